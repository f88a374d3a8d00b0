import type { Json } from './json.ts'

/** `JSON.stringify` for values of any depth; the native one overflows the stack at a few thousand levels. */
export function toJsonText(value: Json): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return toDeepJsonText(value)
  }
}

interface Level {
  readonly entries: readonly (readonly [key: string | undefined, value: Json])[]
  readonly close: string
  at: number
}

function toDeepJsonText(root: Json): string {
  const text: string[] = []
  const levels: Level[] = []
  const put = (value: Json): void => {
    if (typeof value !== 'object' || value === null) {
      text.push(JSON.stringify(value))
      return
    }
    const isArray = Array.isArray(value)
    const entries = isArray
      ? (value as readonly Json[]).map(item => [undefined, item] as const)
      : Object.entries(value).filter(([, item]) => item !== undefined)
    text.push(isArray ? '[' : '{')
    levels.push({ entries, close: isArray ? ']' : '}', at: 0 })
  }
  put(root)
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const entry = level.entries[level.at]
    if (entry === undefined) {
      text.push(level.close)
      levels.pop()
      continue
    }
    if (level.at > 0) text.push(',')
    level.at += 1
    const [key, value] = entry
    if (key !== undefined) text.push(JSON.stringify(key), ':')
    put(value)
  }
  return text.join('')
}
