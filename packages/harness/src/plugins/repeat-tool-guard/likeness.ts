import { hash } from 'node:crypto'
import type { JsonValue } from '@dsh/protocol'
import { isFields } from '../../kernel/index.ts'

/** Arguments that say why or how long, not what. */
const asides = new Set([
  'description',
  'justification',
  'reason',
  'explanation',
  'comment',
  'timeout',
  'timeoutMs',
  'timeout_ms',
])

/** The same for calls that do the same: the order of arguments, spaces and asides do not count. */
export function likenessOf(name: string, args: JsonValue): string {
  return hashOf(`${name} ${JSON.stringify(sorted(withoutAsides(args)))}`)
}

export function hashOf(text: string): string {
  return hash('sha256', text, 'base64')
}

function withoutAsides(args: JsonValue): JsonValue {
  if (!isFields(args)) return args
  const kept = Object.entries(args as { readonly [key: string]: JsonValue }).filter(
    ([key]) => !asides.has(key),
  )
  // A call of nothing but asides is about them.
  return kept.length === 0 ? args : Object.fromEntries(kept)
}

function sorted(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.replaceAll(/\s+/g, ' ').trim()
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(sorted)
  const entries = Object.entries(value as { readonly [key: string]: JsonValue })
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, sorted(inner)]),
  )
}
