import { cutText, utf8Length } from '../../core/tools/index.ts'
import { hunksOf } from './hunks.ts'
import type { Hunk } from './hunks.ts'

/** What a change did, small enough for a log. */
export interface BoundedDiff {
  readonly hunks: readonly Hunk[]
  readonly added: number
  readonly removed: number
  /** Hunks that are left out. */
  readonly omitted: number
}

const maxKeptBytes = 16 * 1024
const maxShownLines = 40
const maxShownLineBytes = 200

/** Undefined where there was nothing to compare. */
export function boundedDiff(before: string | null, after: string): BoundedDiff | undefined {
  if (before === null) return undefined
  const all = hunksOf(before, after)
  const marks = all.flatMap(hunk => hunk.lines.map(line => line.charAt(0)))
  const hunks: Hunk[] = []
  let bytes = 0
  for (const hunk of all) {
    bytes += hunk.lines.reduce((sum, line) => sum + utf8Length(line) + 1, 0)
    if (bytes > maxKeptBytes) break
    hunks.push(hunk)
  }
  return {
    hunks,
    added: marks.filter(mark => mark === '+').length,
    removed: marks.filter(mark => mark === '-').length,
    omitted: all.length - hunks.length,
  }
}

/** The changed lines with their numbers, for a model. Kept lines and new ones bear the number they have now. */
export function diffText({ hunks, omitted }: BoundedDiff): string {
  const rows: string[] = []
  for (const hunk of hunks) {
    let [old, fresh] = [hunk.oldStart, hunk.newStart]
    if (rows.length > 0) rows.push('…')
    for (const line of hunk.lines) {
      const mark = line.charAt(0)
      rows.push(`${mark}${mark === '-' ? old : fresh} ${cutText(line.slice(1), maxShownLineBytes)}`)
      if (mark !== '+') old++
      if (mark !== '-') fresh++
    }
  }
  const shown = rows.slice(0, maxShownLines)
  const isCut = rows.length > shown.length || omitted > 0
  return [...shown, ...(isCut ? ['… (the rest of the change is not shown)'] : [])].join('\n')
}
