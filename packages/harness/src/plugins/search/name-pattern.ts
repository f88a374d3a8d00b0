/** One character of a name: any, any of some, or this one. */
type Token =
  | { readonly kind: 'char'; readonly char: string }
  | { readonly kind: 'any' }
  | {
      readonly kind: 'class'
      readonly isNegated: boolean
      readonly ranges: readonly (readonly [string, string])[]
    }
  | { readonly kind: 'star' }

/** A glob for one name, without slashes and braces. */
export interface NamePattern {
  readonly text: string
  readonly tokens: readonly Token[]
}

/** Throws what `fail` makes of the reason. */
export function readName(text: string, fail: (reason: string) => Error): NamePattern {
  const chars = Array.from(text)
  const tokens: Token[] = []
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? ''
    if (char === '*') tokens.push({ kind: 'star' })
    else if (char === '?') tokens.push({ kind: 'any' })
    else if (char === '\\') {
      const next = chars[++at]
      if (next === undefined) throw fail('ends with a \\')
      tokens.push({ kind: 'char', char: next })
    } else if (char === '[') {
      const end = classEnd(chars, at)
      if (end === -1) throw fail('opens a [ that it does not close')
      tokens.push(readClass(chars.slice(at + 1, end)))
      at = end
    } else tokens.push({ kind: 'char', char })
  }
  return { text, tokens }
}

/** A ] right behind the beginning is one of the class. */
function classEnd(chars: readonly string[], open: number): number {
  const first = '!^'.includes(chars[open + 1] ?? ' ') ? open + 2 : open + 1
  return chars.indexOf(']', first + 1)
}

function readClass(chars: readonly string[]): Token {
  const isNegated = chars[0] === '!' || chars[0] === '^'
  const members = isNegated ? chars.slice(1) : chars
  const ranges: (readonly [string, string])[] = []
  for (let at = 0; at < members.length; at++) {
    const from = members[at] ?? ''
    const to = members[at + 2]
    const isRange = members[at + 1] === '-' && to !== undefined
    ranges.push([from, isRange ? to : from])
    if (isRange) at += 2
  }
  return { kind: 'class', isNegated, ranges }
}

/** Where it does not fit, only the last star can take more: an earlier one would gain nothing. */
export function fitsName({ text, tokens }: NamePattern, name: string): boolean {
  if (name === text) return true
  const chars = Array.from(name)
  let [token, char] = [0, 0]
  let [retryToken, retryChar] = [-1, 0]
  while (char < chars.length) {
    const wanted = tokens[token]
    if (wanted?.kind === 'star') {
      retryToken = token++
      retryChar = char
    } else if (wanted !== undefined && fitsChar(wanted, chars[char] ?? '')) {
      token++
      char++
    } else if (retryToken === -1) return false
    else {
      token = retryToken + 1
      char = ++retryChar
    }
  }
  while (tokens[token]?.kind === 'star') token++
  return token === tokens.length
}

function fitsChar(token: Token, char: string): boolean {
  switch (token.kind) {
    case 'char':
      return token.char === char
    case 'class':
      return token.ranges.some(([from, to]) => from <= char && char <= to) !== token.isNegated
    case 'any':
    case 'star':
      return true
  }
}
