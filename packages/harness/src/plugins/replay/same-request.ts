import type { CanonicalRequest } from './portable.ts'

/** Whether both say the same, byte for byte. */
export function isSameRequest(a: CanonicalRequest, b: CanonicalRequest): boolean {
  return (
    JSON.stringify(a.header) === JSON.stringify(b.header) &&
    a.messages.length === b.messages.length &&
    a.messages.every((message, index) => isSameMessage(message, b.messages[index]))
  )
}

const texts = new WeakMap<object, string>()

function isSameMessage(a: object, b: object | undefined): boolean {
  return a === b || (b !== undefined && textOf(a) === textOf(b))
}

function textOf(message: object): string {
  const text = texts.get(message) ?? JSON.stringify(message)
  texts.set(message, text)
  return text
}
