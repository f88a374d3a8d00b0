import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { cutText } from '@dsh/harness/tools'
import type { Schema, Validator } from '@cfworker/json-schema'
import { usageError } from '../errors.ts'

/** What `--schema` asks of the answer. */
export interface AnswerSchema {
  /** Tells the model before its first turn. */
  readonly instructions: string
  /** The JSON text of an answer that fits, or why it does not. */
  check(answer: string): { readonly json: string } | { readonly problems: string }
}

const maxProblems = 10
const maxProblemBytes = 2000

/** Throws a usage error for a file that holds no JSON Schema. */
export async function loadSchema(cwd: string, file: string): Promise<AnswerSchema> {
  const path = resolve(cwd, file)
  const schema = parseSchema(path, await readText(path))
  const { Validator } = await import('@cfworker/json-schema')
  const validator = new Validator(structuredClone(schema), draftOf(schema), false)
  probe(path, validator)
  return {
    instructions: instructionsFor(JSON.stringify(schema)),
    check: answer => checkAnswer(answer, validator),
  }
}

function instructionsFor(schema: string): string {
  return `End with an answer that is JSON alone, without a code fence or other words. It must fit this JSON Schema:\n${schema}`
}

export function correctionFor(problems: string): string {
  return `The answer does not fit the JSON Schema:\n${problems}\nAnswer again, with the JSON alone.`
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException
    const what =
      code === 'ENOENT' ? `there is no schema "${path}"` : `the schema "${path}" cannot be read: ${code}`
    throw usageError('UNREADABLE_SCHEMA', what, 'dsh run --schema FILE …')
  }
}

function parseSchema(path: string, text: string): Schema {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw invalid(path, `it is not JSON: ${(cause as Error).message}`)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw invalid(path, 'it is not an object')
}

function draftOf({ $schema = '' }: Schema): '4' | '7' | '2019-09' | '2020-12' {
  if (/draft-0[46]/.test($schema)) return $schema.includes('draft-04') ? '4' : '7'
  if ($schema.includes('draft-07')) return '7'
  return $schema.includes('2019-09') ? '2019-09' : '2020-12'
}

/** A broken pattern or reference shows only while something is checked; better now than after the answer. */
function probe(path: string, validator: Validator): void {
  try {
    for (const value of [null, {}, [], '', 0]) validator.validate(value)
  } catch (cause) {
    throw invalid(path, (cause as Error).message.split('\n')[0] ?? '')
  }
}

function invalid(path: string, why: string): Error {
  return usageError('INVALID_SCHEMA', `"${path}" is no JSON Schema: ${why}`, 'dsh run --schema FILE …')
}

function checkAnswer(answer: string, validator: Validator): { json: string } | { problems: string } {
  const json = unfenced(answer)
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    return { problems: `- it is not JSON: ${(cause as Error).message}` }
  }
  const { valid, errors } = validator.validate(value)
  if (valid) return { json }
  const lines = errors
    .slice(0, maxProblems)
    .map(({ instanceLocation, error }) => `- ${instanceLocation}: ${error}`)
  return { problems: cutText(lines.join('\n'), maxProblemBytes) }
}

/** The inside of an answer that is one code fence, else the answer. */
function unfenced(answer: string): string {
  const text = answer.trim()
  return /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text)?.[1]?.trim() ?? text
}
