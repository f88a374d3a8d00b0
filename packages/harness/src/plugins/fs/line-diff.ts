/** Beyond this many inserted and deleted lines the differing middle of two texts counts as rewritten whole. */
const maxEdits = 1000

/**
 * For each line of `fresh` the line of `old` that it repeats, in order; -1 for new ones. A shortest edit script after
 * Myers, bounded in time and memory.
 */
export function keptLines(old: readonly string[], fresh: readonly string[]): readonly number[] {
  const kept: number[] = fresh.map(() => -1)
  let head = 0
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) kept[head] = head++
  let [oldEnd, freshEnd] = [old.length, fresh.length]
  while (oldEnd > head && freshEnd > head && old[oldEnd - 1] === fresh[freshEnd - 1])
    kept[--freshEnd] = --oldEnd
  const [before, after] = [old.slice(head, oldEnd), fresh.slice(head, freshEnd)]
  for (const [at, to] of commonLines(before, after)) kept[head + to] = head + at
  return kept
}

/** For each line of `fresh` the first line of `old` that is kept at or after it; `oldLength` where none is. */
export function nextKept(kept: readonly number[], oldLength: number): readonly number[] {
  const next: number[] = []
  for (let to = kept.length - 1; to >= 0; to--) {
    const same = kept[to] ?? -1
    next[to] = same === -1 ? (next[to + 1] ?? oldLength) : same
  }
  return next
}

function commonLines(old: readonly string[], fresh: readonly string[]): (readonly [number, number])[] {
  if (old.length === 0 || fresh.length === 0) return []
  const rows: Int32Array[] = []
  const limit = Math.min(old.length + fresh.length, maxEdits)
  for (let edits = 0; edits <= limit; edits++) {
    const row = reach(rows.at(-1), edits, old, fresh)
    rows.push(row)
    const end = row[old.length - fresh.length + edits]
    if (Math.abs(old.length - fresh.length) <= edits && end === old.length)
      return walkBack(rows, old.length, fresh.length)
  }
  return []
}

/** At [diagonal + edits]: how far into `old` one gets on that diagonal with so many edits; -1 = out of bounds. */
function reach(
  before: Int32Array | undefined,
  edits: number,
  old: readonly string[],
  fresh: readonly string[],
): Int32Array {
  const row = new Int32Array(2 * edits + 1).fill(-1)
  for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
    let at = before === undefined ? 0 : step(before, diagonal, edits).at
    if (at > old.length || at - diagonal > fresh.length) continue
    while (at < old.length && at - diagonal < fresh.length && old[at] === fresh[at - diagonal]) at++
    row[diagonal + edits] = at
  }
  return row
}

/** Where the last edit that leads to `diagonal` leaves off, and the diagonal it comes from. */
function step(
  before: Int32Array,
  diagonal: number,
  edits: number,
): { readonly at: number; readonly from: number } {
  const deleted = before[diagonal - 1 + edits - 1] ?? -1
  const inserted = before[diagonal + 1 + edits - 1] ?? -1
  const isInsertion = deleted < 0 || (inserted >= 0 && deleted + 1 <= inserted)
  return isInsertion ? { at: inserted, from: diagonal + 1 } : { at: deleted + 1, from: diagonal - 1 }
}

function walkBack(rows: readonly Int32Array[], oldLength: number, freshLength: number): [number, number][] {
  const pairs: [number, number][] = []
  let [at, diagonal] = [oldLength, oldLength - freshLength]
  for (let edits = rows.length - 1; edits >= 0; edits--) {
    const before = rows[edits - 1]
    const start = before === undefined ? { at: 0, from: 0 } : step(before, diagonal, edits)
    while (at > start.at) {
      at--
      pairs.push([at, at - diagonal])
    }
    if (before !== undefined) [at, diagonal] = [before[start.from + edits - 1] ?? 0, start.from]
  }
  return pairs
}
