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

/** What changed between two texts, in order; stretches closer than their context make one hunk. */
export function hunksOf(before: string, after: string): readonly Hunk[] {
  const [old, fresh] = [splitLines(before), splitLines(after)]
  const rows = rowsOf(old, fresh)
  const changed = rows.flatMap((row, index) => (row.mark === ' ' ? [] : [index]))
  const hunks: Hunk[] = []
  for (let index = 0; index < changed.length; index++) {
    const first = changed[index] ?? 0
    let last = first
    while ((changed[index + 1] ?? Infinity) <= last + 2 * contextLines + 1) last = changed[++index] ?? last
    const part = rows.slice(Math.max(0, first - contextLines), last + contextLines + 1)
    const [start] = part
    if (start === undefined) continue
    hunks.push({
      oldStart: start.old + 1,
      newStart: start.fresh + 1,
      lines: part.map(row => row.mark + row.text),
    })
  }
  return hunks
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
