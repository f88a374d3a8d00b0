type Version = readonly [major: number, minor: number, patch: number]

/** From `from` on, and below `below`. */
interface Span {
  readonly from: Version
  readonly below: Version
}

const lowest: Version = [0, 0, 0]
const highest: Version = [Infinity, 0, 0]
const comparator = /^(\^|~|>=|<=|>|<|=)?v?(\d+|[x*])(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?(?:[-+].*)?$/i

/**
 * Whether `version` lies in `range`, as npm means it, with pre-releases counted as their release. A range in a form
 * that names no versions, such as an address, holds: it is not for us to judge.
 */
export function isInRange(version: string, range: string): boolean {
  const own = toVersion(version.split('.'))
  return range.split('||').some(part => {
    const spans = toSpans(part)
    return spans.every(span => compare(own, span.from) >= 0 && compare(own, span.below) < 0)
  })
}

function toSpans(part: string): Span[] {
  const hyphen = /^\s*(\S+)\s+-\s+(\S+)\s*$/.exec(part)
  const text = hyphen === null ? part : `>=${hyphen[1]} <=${hyphen[2]}`
  const words = text
    .replace(/([\^~<>=])\s+/g, '$1')
    .split(/\s+/)
    .filter(word => word !== '')
  return words.flatMap(word => toSpan(word) ?? [])
}

function toSpan(word: string): Span | undefined {
  const [, operator = '', ...parts] = comparator.exec(word) ?? []
  if (parts.length === 0) return undefined
  const given = parts.findIndex(part => part === undefined || /[x*]/i.test(part))
  const depth = given < 0 ? parts.length : given
  const base = toVersion(parts.slice(0, depth))
  const next = depth === 0 ? highest : raise(base, depth - 1)
  switch (operator) {
    case '>=':
      return { from: base, below: highest }
    case '>':
      return { from: next, below: highest }
    case '<':
      return { from: lowest, below: base }
    case '<=':
      return { from: lowest, below: next }
    case '~':
      return { from: base, below: depth === 0 ? highest : raise(base, Math.min(depth - 1, 1)) }
    case '^':
      return { from: base, below: depth === 0 ? highest : raise(base, firstNonZero(base, depth)) }
    default:
      return { from: base, below: next }
  }
}

function firstNonZero(version: Version, depth: number): number {
  const index = version.findIndex(number => number > 0)
  return index < 0 || index >= depth ? depth - 1 : index
}

/** The first version in which the number at `index` is higher. */
function raise(version: Version, index: number): Version {
  return toVersion(version.map((number, at) => (at < index ? number : at === index ? number + 1 : 0)))
}

function toVersion(parts: readonly (string | number | undefined)[]): Version {
  const [major = 0, minor = 0, patch = 0] = parts.map(part => Number.parseInt(String(part), 10) || 0)
  return [major, minor, patch]
}

function compare(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
}
