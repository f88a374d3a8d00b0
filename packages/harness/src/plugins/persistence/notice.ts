import type { SessionId } from '@dsh/protocol'
import type { Emit, Parallel } from '../../kernel/index.ts'

/** Something about what is stored that a person should know. */
export interface PersistenceNotice {
  /** Absent where it is about no single session. */
  readonly id?: SessionId
  readonly code: NoticeCode
  readonly message: string
}

export type NoticeCode =
  /** A write in the background failed; it is tried again with the next event. */
  | 'WRITE_FAILED'
  /** The end of a session could not be stored. */
  | 'RETIRE_FAILED'
  /** Incomplete bytes at the end of a log were cut off. */
  | 'TAIL_CUT'
  /** What crashed programs left half made could not be removed. */
  | 'SWEEP_FAILED'

declare module '../../kernel/index.ts' {
  interface Events {
    'persistence/notice': Emit<[notice: PersistenceNotice]>
    /** A stored session is gone for good; whoever keeps something of it beside its log lets go of it now. */
    'persistence/removed': Parallel<[id: SessionId]>
  }
}
