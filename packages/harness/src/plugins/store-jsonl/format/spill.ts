import type { JsonValue, SessionEvent } from '@dsh/protocol'
import { toJsonText } from '../../../kernel/index.ts'

/** Longer strings are kept beside the log, bytes of UTF-8. */
export const longestInlineText = 64 * 1024

/** A string that an event line leaves out; it stands at `path` of the event, and as an artifact under its hash. */
export interface Spill {
  readonly path: readonly (string | number)[]
  readonly sha256: string
  readonly bytes: number
}

/** Keeps `text` and gives its hash. */
export type KeepText = (bytes: Buffer) => Promise<string>

interface Place {
  readonly value: JsonValue
  readonly parent: Place | undefined
  readonly key: string | number
}

/** The line of one event, without its newline. Long strings go to `keep`; each is kept when the promise resolves. */
export function toEventLine(event: SessionEvent, keep: KeepText): string | Promise<string> {
  const line = toJsonText(event as unknown as JsonValue)
  return line.length <= longestInlineText / 3 ? line : spillLine(event as unknown as JsonValue, line, keep)
}

async function spillLine(event: JsonValue, line: string, keep: KeepText): Promise<string> {
  const long = longTexts(event)
  if (long.length === 0) return line
  const copies = new Map<JsonValue, JsonValue>()
  const spill: Spill[] = []
  for (const place of long) {
    const bytes = Buffer.from(place.value as string, 'utf8')
    spill.push({ path: pathOf(place), sha256: await keep(bytes), bytes: bytes.length })
    replaceText(place, copies)
  }
  const copy = copies.get(event) as { readonly [key: string]: JsonValue }
  return toJsonText({ ...copy, spill: spill as unknown as JsonValue })
}

function longTexts(root: JsonValue): readonly Place[] {
  const found: Place[] = []
  const open: Place[] = [{ value: root, parent: undefined, key: '' }]
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { value } = place
    if (typeof value === 'string') {
      if (isLong(value)) found.push(place)
    } else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) {
        const index = Array.isArray(value) ? Number(key) : key
        open.push({
          value: (value as { [key: string]: JsonValue })[key] as JsonValue,
          parent: place,
          key: index,
        })
      }
    }
  }
  return found.reverse()
}

// UTF-8 cannot hold half a surrogate pair, so such a text stays in its line, escaped.
function isLong(text: string): boolean {
  return (
    text.length > longestInlineText / 3 && Buffer.byteLength(text) > longestInlineText && text.isWellFormed()
  )
}

function pathOf(place: Place): readonly (string | number)[] {
  const path: (string | number)[] = []
  for (let at = place; at.parent !== undefined; at = at.parent) path.push(at.key)
  return path.reverse()
}

/** Puts an empty text at `place`, in copies of all that contains it. */
function replaceText(place: Place, copies: Map<JsonValue, JsonValue>): void {
  let child: JsonValue = ''
  for (let at = place; at.parent !== undefined; at = at.parent) {
    const original = at.parent.value
    const known = copies.get(original)
    const copy = known ?? (Array.isArray(original) ? [...original] : { ...(original as object) })
    ;(copy as { [key: string]: JsonValue })[at.key] = child
    if (known !== undefined) return
    copies.set(original, copy)
    child = copy
  }
}

export function isSpillList(value: unknown): value is readonly Spill[] {
  return (
    Array.isArray(value) &&
    value.every(
      (spill: Partial<Spill> | null) =>
        Array.isArray(spill?.path) && typeof spill.sha256 === 'string' && typeof spill.bytes === 'number',
    )
  )
}

/** Puts `text` back where it was left out. False where the event has no such place. */
export function putBack(event: object, spill: Spill, text: string): boolean {
  const keys = [...spill.path]
  const last = keys.pop()
  let container: unknown = event
  for (const key of keys) {
    if (!hasOwn(container, key)) return false
    container = container[key]
  }
  if (last === undefined || !hasOwn(container, last) || typeof container[last] !== 'string') return false
  container[last] = text
  return true
}

// Own keys alone: a path in a foreign log must not reach a prototype.
function hasOwn(value: unknown, key: string | number): value is { [key: string | number]: unknown } {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
}
