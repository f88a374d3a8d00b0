import { nextKept } from './line-diff.ts'
import { linesOf } from './lines.ts'

/**
 * `fresh` as it goes into the file in place of `raw`: kept lines as they stand there, each line with the end of the
 * one it repeats or replaces, else with that of the line before it. `around` are the ends of the line before `raw` and of
 * the one that `raw` ends in.
 */
export function mergeLines(
  raw: string,
  fresh: readonly string[],
  kept: readonly number[],
  around: { readonly before?: string | undefined; readonly after?: string | undefined },
): string {
  const there = linesOf(raw)
  const endOf = (index: number): string | undefined => {
    const line = there[index]
    if (line === undefined || index === there.length - 1) return around.after
    return raw.slice(line.end, line.next)
  }
  const following = nextKept(kept, there.length)
  let next = 0
  let lastEnd = endOf(0) || around.before || '\n'
  const parts: string[] = []
  for (const [index, line] of fresh.entries()) {
    const same = kept[index] ?? -1
    const isPaired = same !== -1 || next < (following[index] ?? 0)
    const replaces = same === -1 && isPaired ? next : same
    if (replaces !== -1) next = replaces + 1
    lastEnd = (replaces === -1 ? '' : endOf(replaces)) || lastEnd
    const source = there[same]
    parts.push(source === undefined ? line : raw.slice(source.start, source.end))
    if (index < fresh.length - 1) parts.push(lastEnd)
  }
  return parts.join('')
}

/**
 * `fresh` under the indentation that `there` has where `old` has another; undefined where one indentation of `old`
 * stands for several, or several for one.
 */
export function reindent(
  old: readonly string[],
  there: readonly string[],
  fresh: readonly string[],
): string[] | undefined {
  const toThere = new Map<string, string>()
  const toOld = new Map<string, string>()
  for (const [index, line] of old.entries()) {
    if (line.trim() === '') continue
    const [from, to] = [indentOf(line), indentOf(there[index] ?? '')]
    if ((toThere.get(from) ?? to) !== to || (toOld.get(to) ?? from) !== from) return undefined
    toThere.set(from, to)
    toOld.set(to, from)
  }
  const translate = translation([...toThere])
  return fresh.map(line => {
    const indent = indentOf(line)
    return line.trim() === '' ? line : translate(indent) + line.slice(indent.length)
  })
}

function indentOf(line: string): string {
  return /^[\t ]*/.exec(line)?.[0] ?? ''
}

function translation(pairs: readonly (readonly [from: string, to: string])[]): (indent: string) => string {
  const [[from, to] = ['', '']] = pairs
  const deeper = to.slice(0, Math.max(0, to.length - from.length))
  if (pairs.every(pair => pair[1] === deeper + pair[0])) return indent => deeper + indent
  const less = from.slice(0, Math.max(0, from.length - to.length))
  if (pairs.every(pair => pair[0] === less + pair[1]))
    return indent => (indent.startsWith(less) ? indent.slice(less.length) : '')
  const longestFirst = pairs.toSorted((a, b) => b[0].length - a[0].length)
  const unit = longestFirst.find(pair => pair[0] !== '' && pair[1] !== '')
  return indent => {
    const known = longestFirst.find(pair => indent.startsWith(pair[0]))
    if (known === undefined) return indent
    return known[1] + inUnits(indent.slice(known[0].length), unit)
  }
}

/** What is left of an indentation, counted in the units of a pair that is known: tabs for spaces, or spaces for tabs. */
function inUnits(rest: string, unit: readonly [from: string, to: string] | undefined): string {
  if (rest === '' || unit === undefined) return rest
  const [from, to] = unit
  const isTurned = rest.charAt(0) === from.charAt(0) && from.charAt(0) !== to.charAt(0)
  const count = (rest.length * to.length) / from.length
  return isTurned && Number.isInteger(count) ? to.charAt(0).repeat(count) : rest
}
