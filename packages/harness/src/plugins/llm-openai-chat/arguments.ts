import { isFields, parseJson } from '../../kernel/index.ts'

/**
 * The arguments of a tool call as the text of a JSON object, which is all that hosts accept in a history.
 *
 * An object stays byte for byte as the model wrote it. Nothing becomes `{}` silently, anything else becomes `{}` with
 * `changed`, and so do escapes of half a character.
 */
export function argumentsObject(text: string): { readonly text: string; readonly changed: boolean } {
  const trimmed = text.trim()
  if (trimmed === '') return { text: '{}', changed: false }
  const value = parseJson(trimmed)
  if (!isFields(value)) return { text: '{}', changed: true }
  if (!escapesSurrogate.test(text) && text.isWellFormed()) return { text, changed: false }
  return mended(text, value)
}

const escapesSurrogate = /\\u[dD][89a-fA-F]/

/** Whether `text` is one whole JSON object. */
export function isWholeObject(text: string): boolean {
  return isFields(parseJson(text))
}

function mended(text: string, value: object): { text: string; changed: boolean } {
  let lone = false
  const fix = (part: string): string => {
    if (part.isWellFormed()) return part
    lone = true
    return part.toWellFormed()
  }
  const whole = parsedWith(text, (key, part: unknown) => mendPart(part, fix)) ?? value
  return lone ? { text: JSON.stringify(whole), changed: true } : { text, changed: false }
}

function mendPart(part: unknown, fix: (text: string) => string): unknown {
  if (typeof part === 'string') return fix(part)
  if (!isFields(part)) return part
  if (Object.keys(part).every(key => key.isWellFormed())) return part
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [fix(key), value]))
}

function parsedWith(text: string, reviver: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver)
  } catch {
    return undefined
  }
}
