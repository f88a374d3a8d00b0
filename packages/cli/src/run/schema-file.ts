import { open } from 'node:fs/promises'
import { constants } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Schema, SchemaDraft } from '@cfworker/json-schema'
import { usageError } from '../errors.ts'

const maxBytes = 1024 * 1024
/** How soon a pipe that held nothing is looked at again. */
const pauseMs = 20

/** The JSON Schema in a file. Throws a usage error where the file holds none that could be kept to. */
export async function readSchema(path: string, signal: AbortSignal): Promise<Schema> {
  const value = parse(path, await readText(path, signal))
  const { dereference, validate } = await import('@cfworker/json-schema')
  try {
    const parts = dereference(structuredClone(value))
    for (const part of Object.values(parts)) {
      checkType(part)
      // A broken pattern or reference shows only while something is checked; better now than after the answer.
      for (const sample of samples) validate(sample, part, draftOf(value), parts, false)
    }
    return value
  } catch (cause) {
    throw invalid(path, problemOf(cause))
  }
}

const samples: readonly unknown[] = [null, {}, [], '', 0]

/** Whose words a schema is written in: the newest where it does not say. */
export function draftOf({ $schema }: Schema): SchemaDraft {
  const name = String($schema)
  if (name.includes('draft-04')) return '4'
  if (/draft-0[67]/.test(name)) return '7'
  return name.includes('2019-09') ? '2019-09' : '2020-12'
}

/** What was thrown while something was checked, in a line. */
export function problemOf(cause: unknown): string {
  if (cause instanceof RangeError) return 'it is nested too deeply, or refers to itself without end'
  return (cause as Error).message.split('\n')[0] ?? ''
}

function parse(path: string, text: string): Schema {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw invalid(path, `it is not JSON: ${(cause as Error).message}`)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw invalid(path, 'it is not an object')
}

const types: ReadonlySet<unknown> = new Set([
  'array',
  'boolean',
  'integer',
  'null',
  'number',
  'object',
  'string',
])

function checkType(part: Schema | boolean): void {
  if (typeof part === 'boolean' || part.type === undefined) return
  for (const type of [part.type].flat())
    if (!types.has(type)) throw new TypeError(`there is no type ${JSON.stringify(type)}`)
}

/** A pipe is waited for only as long as `signal` lets; opened like a file it could not be given up. */
async function readText(path: string, signal: AbortSignal): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const chunks: Buffer[] = []
    for (let size = 0; size <= maxBytes;) {
      signal.throwIfAborted()
      const chunk = Buffer.alloc(64 * 1024)
      const count = await file.read(chunk).then(
        ({ bytesRead }) => bytesRead,
        (error: unknown) => (isNotYet(error) ? undefined : Promise.reject(error)),
      )
      if (count === 0) return Buffer.concat(chunks).toString('utf8')
      if (count === undefined) await setTimeout(pauseMs)
      else chunks.push(chunk.subarray(0, count))
      size += count ?? 0
    }
  } catch (cause) {
    signal.throwIfAborted()
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException
    throw unreadable(
      code === 'ENOENT' ? `there is no schema "${path}"` : `the schema "${path}" cannot be read: ${code}`,
    )
  }
  throw unreadable(`the schema "${path}" is larger than ${maxBytes} bytes`)
}

function isNotYet(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EAGAIN'
}

function unreadable(what: string): Error {
  return usageError('UNREADABLE_SCHEMA', what, 'dsh run --schema FILE …')
}

function invalid(path: string, why: string): Error {
  return usageError('INVALID_SCHEMA', `"${path}" is no JSON Schema: ${why}`, 'dsh run --schema FILE …')
}
