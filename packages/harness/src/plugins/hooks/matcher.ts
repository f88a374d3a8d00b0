/** Whether a hook is for what has one of `names`. */
export type Matcher = (names: readonly string[]) => boolean

/** `names` reads a matcher of words and bars as names, whole and exact, and any other as `pattern` does. */
export type MatcherMode = 'names' | 'pattern'

const wordsAndBars = /^[A-Za-z0-9_|]+$/

/** No matcher, an empty one and `*` match all, also what has no name. Throws a SyntaxError for a broken pattern. */
export function toMatcher(matcher: string | undefined, mode: MatcherMode): Matcher {
  if (matcher === undefined || matcher === '' || matcher === '*') return () => true
  if (mode === 'names' && wordsAndBars.test(matcher)) {
    const wanted = new Set(matcher.split('|'))
    return names => names.some(name => wanted.has(name))
  }
  const pattern = new RegExp(matcher)
  return names => names.some(name => pattern.test(name))
}
