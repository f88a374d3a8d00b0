import type { JsonValue } from '@dsh/protocol'
import { freezeJson, isFields, isPositive, parseJson } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import type { CodeFailureKind } from './service.ts'

/** What the process of a program says, read anew and believed only in its form. */
export type Frame =
  | { readonly type: 'boot-ack' }
  | { readonly type: 'log'; readonly text: string }
  /** Without arguments: what they were, JSON does not keep. */
  | {
      readonly type: 'call'
      readonly id: number
      readonly global: string
      readonly name: string
      readonly args: JsonValue | undefined
    }
  | {
      readonly type: 'done'
      readonly value?: JsonValue
      readonly error?: { readonly kind: CodeFailureKind; readonly message: string }
      readonly unread: readonly number[]
    }

/** The failures of which a program's own process can speak. */
const ownFailures: readonly unknown[] = ['exception', 'invalid-output'] satisfies CodeFailureKind[]

const lostValue = { kind: 'invalid-output', message: 'the program returned what JSON does not keep' } as const

/** Undefined for what is no frame. */
export function readFrame(text: string, { hasBigIntegers }: { hasBigIntegers: boolean }): Frame | undefined {
  const frame = parseJson(text)
  if (!isFields(frame)) return undefined
  const isLossy = hasBigIntegers && hasUnsafeInteger(text)
  const { type, id, global, name } = frame
  if (type === 'boot-ack') return { type }
  if (type === 'log') return typeof frame['text'] === 'string' ? { type, text: frame['text'] } : undefined
  if (type === 'done') return readDone(frame, isLossy)
  if (type !== 'call' || !isPositive(id) || typeof global !== 'string' || typeof name !== 'string')
    return undefined
  return { type, id, global, name, args: isLossy ? undefined : kept(frame['args']) }
}

function readDone({ value, error, unread }: Fields, isLossy: boolean): Frame {
  const list: readonly unknown[] = Array.isArray(unread) ? unread : []
  const done = { type: 'done', unread: list.filter(isPositive) } as const
  if (isFields(error)) {
    const { kind, message } = error
    const own = ownFailures.includes(kind) ? (kind as CodeFailureKind) : 'exception'
    return { ...done, error: { kind: own, message: String(message) } }
  }
  if (value === undefined) return done
  const json = isLossy ? undefined : kept(value)
  return json === undefined ? { ...done, error: lostValue } : { ...done, value: json }
}

/** JSON text can say numbers that JSON does not keep, such as 1e999. */
function kept(value: unknown): JsonValue | undefined {
  try {
    return value === undefined ? undefined : (freezeJson(value) as JsonValue)
  } catch {
    return undefined
  }
}

/** Whether a whole number stands in the JSON text that would be read as another one. */
function hasUnsafeInteger(json: string): boolean {
  let at = 0
  while (at < json.length) {
    const quote = json.indexOf('"', at)
    const end = quote === -1 ? json.length : quote
    for (const [integer] of json.substring(at, end).matchAll(/(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g))
      if (!Number.isSafeInteger(Number(integer))) return true
    at = quote === -1 ? end : endOfString(json, quote)
  }
  return false
}

function endOfString(json: string, quote: number): number {
  let at = quote + 1
  while (json[at] !== '"' && at < json.length) at += json[at] === '\\' ? 2 : 1
  return at + 1
}
