import { keptLines, nextKept } from './line-diff.ts'
import { splitLines } from './lines.ts'

/** One changed stretch with the lines around it. Line numbers start at 1. */
export interface Hunk {
  readonly oldStart: number
  readonly newStart: number
  /** Each with its mark in front: a blank, `-` or `+`. */
  readonly lines: readonly string[]
}

const contextLines = 3

/** What changed between two texts with LF line ends, in order; stretches closer than their context make one hunk. */
export function hunksOf(before: string, after: string): readonly Hunk[] {
  const { start, ends, skipped } = differingPart(before, after)
  const [old, fresh] = [
    splitLines(before.slice(start, ends.before)),
    splitLines(after.slice(start, ends.after)),
  ]
  const rows = rowsOf(old, fresh)
  const changed = rows.flatMap((row, index) => (row.mark === ' ' ? [] : [index]))
  const hunks: Hunk[] = []
  for (let index = 0; index < changed.length; index++) {
    const from = changed[index] ?? 0
    let last = from
    while ((changed[index + 1] ?? Infinity) <= last + 2 * contextLines + 1) last = changed[++index] ?? last
    const part = rows.slice(Math.max(0, from - contextLines), last + contextLines + 1)
    const [first] = part
    if (first === undefined) continue
    hunks.push({
      oldStart: first.old + 1 + skipped,
      newStart: first.fresh + 1 + skipped,
      lines: part.map(row => row.mark + row.text),
    })
  }
  return hunks
}

/** Characters that are compared at once. */
const stride = 4096

/** The lines that differ with more than enough context around them, so that the rest need not be taken apart. */
function differingPart(before: string, after: string) {
  const length = Math.min(before.length, after.length)
  let head = 0
  while (head + stride <= length && before.startsWith(after.slice(head, head + stride), head)) head += stride
  while (head < length && before.charCodeAt(head) === after.charCodeAt(head)) head++
  let tail = 0
  const room = length - head
  const isSame = (count: number): boolean =>
    before.startsWith(after.slice(after.length - count, after.length - count + stride), before.length - count)
  while (tail + stride <= room && isSame(tail + stride)) tail += stride
  while (
    tail < room &&
    before.charCodeAt(before.length - tail - 1) === after.charCodeAt(after.length - tail - 1)
  )
    tail++
  const start = lineStartBefore(before, head)
  const end = lineEndBehind(before, before.length - tail)
  const ends = { before: end, after: after.length - (before.length - end) }
  return { start, ends, skipped: lineFeedsIn(before, start) }
}

/** Where the line begins that is further up than the context of one at `at`. */
function lineStartBefore(text: string, at: number): number {
  let start = at
  for (let lines = 0; lines <= contextLines + 1; lines++) {
    start = start <= 0 ? -1 : text.lastIndexOf('\n', start - 1)
    if (start === -1) return 0
  }
  return start + 1
}

function lineEndBehind(text: string, at: number): number {
  let end = at - 1
  for (let lines = 0; lines <= contextLines + 1; lines++) {
    end = text.indexOf('\n', end + 1)
    if (end === -1) return text.length
  }
  return end
}

function lineFeedsIn(text: string, end: number): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) count++
  return count
}

interface Row {
  readonly mark: ' ' | '-' | '+'
  readonly text: string
  /** Lines of either side that come before this row. */
  readonly old: number
  readonly fresh: number
}

function rowsOf(old: readonly string[], fresh: readonly string[]): Row[] {
  const rows: Row[] = []
  let at = 0
  const removeUpTo = (end: number, to: number): void => {
    for (; at < end; at++) rows.push({ mark: '-', text: old[at] ?? '', old: at, fresh: to })
  }
  const kept = keptLines(old, fresh)
  const next = nextKept(kept, old.length)
  for (const [to, text] of fresh.entries()) {
    removeUpTo(next[to] ?? old.length, to)
    const isKept = kept[to] !== -1
    rows.push({ mark: isKept ? ' ' : '+', text, old: at, fresh: to })
    if (isKept) at++
  }
  removeUpTo(old.length, fresh.length)
  // The empty piece behind the last line end is no line.
  const last = rows.at(-1)
  if (last?.mark === ' ' && last.text === '') rows.pop()
  return rows
}
