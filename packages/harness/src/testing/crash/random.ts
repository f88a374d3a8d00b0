export interface Random {
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number
  pick<T>(values: readonly T[]): T
  bytes(length: number): Buffer
}

/** The same numbers for the same seed, whatever the text. */
export function randomOf(seed: string): Random {
  let state = 0x811c9dc5
  for (const unit of seed) state = Math.imul(state ^ (unit.codePointAt(0) ?? 0), 0x01000193)
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  const below = (limit: number): number => next() % limit
  return {
    below,
    pick: values => values[below(values.length)] as (typeof values)[number],
    bytes: length => Buffer.from(Array.from({ length }, () => below(256))),
  }
}
