import type { SessionId } from '@dsh/protocol'

/** What may stay. A limit that is absent is none. */
export interface RetentionLimits {
  /** Since the last event. */
  readonly maxAgeDays?: number | undefined
  readonly maxSessions?: number | undefined
  /** Of all logs together. */
  readonly maxBytes?: number | undefined
}

export interface StoredCandidate {
  readonly id: SessionId
  readonly updatedAt: number
  /** 0 where it is not known. */
  readonly bytes: number
  readonly archived: boolean
  /** Somebody works on it: it stays, whatever the limits are. */
  readonly inUse: boolean
}

export type RemovalReason = 'age' | 'count' | 'bytes'

export interface Removal {
  readonly candidate: StoredCandidate
  readonly reason: RemovalReason
}

export const dayMs = 86_400_000

/**
 * What must go: all that is too old, and then, as long as there is too much, what is archived and what is oldest, in
 * this order. What is in use counts, and stays.
 */
export function planRetention(
  candidates: readonly StoredCandidate[],
  limits: RetentionLimits,
  now: number,
): readonly Removal[] {
  const { maxAgeDays = Infinity, maxSessions = Infinity, maxBytes = Infinity } = limits
  const isOld = ({ updatedAt }: StoredCandidate): boolean => now - updatedAt > maxAgeDays * dayMs
  const free = candidates.filter(({ inUse }) => !inUse).toSorted(leastWanted)
  const old = free.filter(isOld)
  const removals: Removal[] = old.map(candidate => ({ candidate, reason: 'age' }))
  let count = candidates.length - old.length
  let bytes =
    candidates.reduce((sum, each) => sum + each.bytes, 0) - old.reduce((sum, each) => sum + each.bytes, 0)
  for (const candidate of free) {
    if (isOld(candidate)) continue
    if (count <= maxSessions && bytes <= maxBytes) break
    removals.push({ candidate, reason: count > maxSessions ? 'count' : 'bytes' })
    count -= 1
    bytes -= candidate.bytes
  }
  return removals
}

function leastWanted(a: StoredCandidate, b: StoredCandidate): number {
  if (a.archived !== b.archived) return a.archived ? -1 : 1
  return a.updatedAt - b.updatedAt
}
