/** What a JSON pointer (RFC 6901) names in `value`; undefined where there is nothing. */
export function atPointer(value: unknown, pointer: string): unknown {
  if (pointer === '') return value
  let at = value
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, unknown>)[key]
  }
  return at
}
