/** A place in a pattern: what it does with a character, and whether the next place may be entered without one. */
interface Place {
  /** The characters, by code, that lead to the next place. */
  readonly goesOn: (code: number) => boolean
  /** Those that may be repeated here. */
  readonly stays: (code: number) => boolean
  /** The places that may be entered at once instead. */
  readonly skips: readonly number[]
}

interface Piece<T> {
  readonly what: T
  readonly next: number
}

const slash = 47
const any = (): boolean => true
const none = (): boolean => false
const notSlash = (code: number): boolean => code !== slash

/**
 * Whether a path, with one character a byte, matches a pattern of an ignore file. The time grows with the lengths of
 * the two alone: whoever wrote the pattern may mean no good.
 */
export function matcherOf(pattern: string): (text: string) => boolean {
  if (!/[*?[\\]/.test(pattern)) return text => text === pattern
  const [, ending] = /^\*([^*?[\\/]+)$/.exec(pattern) ?? []
  if (ending !== undefined) return text => text.endsWith(ending) && !text.includes('/')
  const places = placesOf(pattern)
  if (places === undefined) return () => false
  const beginning = /^[^*?[\\]*/.exec(pattern)?.[0] ?? ''
  return text => text.startsWith(beginning) && isMatch(places, text)
}

/** Follows all ways through the places at once. */
function isMatch(places: readonly Place[], text: string): boolean {
  let now = reach(places, 0, new Set())
  for (let at = 0; at < text.length && now.size > 0; at++) {
    const code = text.charCodeAt(at)
    const next = new Set<number>()
    for (const index of now) {
      const place = places[index]
      if (place?.stays(code) === true) reach(places, index, next)
      if (place?.goesOn(code) === true) reach(places, index + 1, next)
    }
    now = next
  }
  return now.has(places.length)
}

function reach(places: readonly Place[], index: number, into: Set<number>): Set<number> {
  if (into.has(index)) return into
  into.add(index)
  for (const skip of places[index]?.skips ?? []) reach(places, index + skip, into)
  return into
}

/** Undefined for a pattern that is broken and matches nothing. */
function placesOf(pattern: string): readonly Place[] | undefined {
  const places: Place[] = []
  for (let at = 0; at < pattern.length;) {
    const char = pattern.charAt(at)
    const piece = char === '*' ? starsAt(pattern, at) : oneAt(pattern, at)
    if (piece === undefined) return undefined
    places.push(...piece.what)
    at = piece.next
  }
  return places
}

/** Two stars that stand alone between slashes are any folders; any others are a single one. */
function starsAt(pattern: string, start: number): Piece<readonly Place[]> {
  let next = start
  while (pattern[next] === '*') next++
  const isWhole = next - start > 1 && (start === 0 || pattern[start - 1] === '/')
  if (isWhole && next === pattern.length) return { what: [{ goesOn: none, stays: any, skips: [1] }], next }
  if (!isWhole || pattern[next] !== '/')
    return { what: [{ goesOn: none, stays: notSlash, skips: [1] }], next }
  const entry = { goesOn: none, stays: none, skips: [1, 2] }
  return { what: [entry, { goesOn: code => code === slash, stays: any, skips: [] }], next: next + 1 }
}

function oneAt(pattern: string, at: number): Piece<readonly Place[]> | undefined {
  const char = pattern.charAt(at)
  if (char === '[') return setAt(pattern, at)
  if (char === '?') return { what: [one(notSlash)], next: at + 1 }
  const member = memberAt(pattern, at)
  if (member === undefined) return undefined
  const wanted = member.what.charCodeAt(0)
  return { what: [one(code => code === wanted)], next: member.next }
}

function one(goesOn: Place['goesOn']): Place {
  return { goesOn, stays: none, skips: [] }
}

function setAt(pattern: string, start: number): Piece<readonly Place[]> | undefined {
  let at = start + 1
  const isNegated = pattern[at] === '!' || pattern[at] === '^'
  if (isNegated) at++
  let inside = ''
  for (let isFirst = true; isFirst || pattern[at] !== ']'; isFirst = false) {
    const item = at < pattern.length ? (classAt(pattern, at) ?? rangeAt(pattern, at)) : undefined
    if (item === undefined) return undefined
    inside += item.what
    at = item.next
  }
  const set = new RegExp(isNegated ? `[^${inside}]` : inside === '' ? '(?!)' : `[${inside}]`, 's')
  const codes = Array.from(
    { length: 256 },
    (_, code) => code !== slash && set.test(String.fromCharCode(code)),
  )
  return { what: [one(code => codes[code] === true)], next: at + 1 }
}

function classAt(pattern: string, at: number): Piece<string> | undefined {
  const [whole, name = ''] = /^\[:(\w*):\]/.exec(pattern.slice(at)) ?? []
  const inside = Object.hasOwn(classes, name) ? classes[name] : undefined
  return whole === undefined || inside === undefined ? undefined : { what: inside, next: at + whole.length }
}

function rangeAt(pattern: string, at: number): Piece<string> | undefined {
  const low = memberAt(pattern, at)
  if (low === undefined) return undefined
  const { next } = low
  const isRange = pattern[next] === '-' && next + 1 < pattern.length && pattern[next + 1] !== ']'
  const high = isRange ? memberAt(pattern, next + 1) : low
  if (high === undefined) return undefined
  const what = low.what <= high.what ? `${member(low.what)}-${member(high.what)}` : ''
  return { what, next: high.next }
}

function memberAt(pattern: string, at: number): Piece<string> | undefined {
  if (pattern[at] !== '\\') return { what: pattern.charAt(at), next: at + 1 }
  return at + 1 < pattern.length ? { what: pattern.charAt(at + 1), next: at + 2 } : undefined
}

function member(char: string): string {
  return `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
}

const classes: Readonly<Record<string, string>> = {
  alnum: 'A-Za-z0-9',
  alpha: 'A-Za-z',
  blank: ' \\t',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '\\x21-\\x7e',
  lower: 'a-z',
  print: '\\x20-\\x7e',
  punct: '\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e',
  space: ' \\t\\n\\v\\f\\r',
  upper: 'A-Z',
  xdigit: '0-9A-Fa-f',
}
