import type { SessionHeader } from '@dsh/protocol'

/** What a medium finds when it reads a whole log and believes nothing of it. */
export interface MediumReport {
  /** Absent where it cannot be read. */
  readonly header?: SessionHeader
  /** Units that the medium checks one by one; 0 where it has none. */
  readonly frames: number
  /** The first seq of each frame behind the header, up to any damage; absent where there are no frames. */
  readonly frameStarts?: readonly number[]
  /** Readable events, those behind damage too. */
  readonly events: number
  /** What the log takes where it is stored. */
  readonly bytes: number
  /** In the order of the log; none of a sound one. */
  readonly problems: readonly MediumProblem[]
  /** An unfinished write at the end, which whoever continues the log puts aside. What a crash leaves is no damage. */
  readonly tornBytes?: number
}

export interface MediumProblem {
  /** UPPER_SNAKE; says the kind of damage. */
  readonly code: string
  readonly message: string
  /** The unit it was found in, from 0. */
  readonly frame?: number
  /** The first event concerned. */
  readonly seq?: number
  /** In bytes, from the beginning of the stored log. */
  readonly offset?: number
}

export interface RepairResult {
  /** Where the log is that was there before, untouched; absent where it was sound and nothing was written. */
  readonly kept?: string
  /** How many events the log has now. */
  readonly events: number
  /** Bits that had flipped and are as they were. */
  readonly mended?: number
  /** What is in the kept log alone. */
  readonly lost?: readonly LostEvents[]
  /** What another writer made of the log; each is a stored session of its own now. */
  readonly branches: readonly RepairedBranch[]
}

/** Seqs `fromSeq`…`toSeq` that the repaired log is without; none where `toSeq` is smaller. */
export interface LostEvents {
  readonly fromSeq: number
  readonly toSeq: number
  readonly reason: string
  /** They can be read from the kept log, but no session can begin with them. */
  readonly isReadable?: boolean
}

export interface RepairedBranch {
  readonly header: SessionHeader
  /** How many events it has, the common beginning among them. */
  readonly events: number
}
