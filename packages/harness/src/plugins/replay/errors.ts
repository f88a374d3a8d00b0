import { HarnessError } from '../../kernel/index.ts'

export type ReplayErrorCode =
  /** The file is something else. */
  | 'NOT_A_RECORDING'
  /** It was written by a later version of dsh. */
  | 'RECORDING_TOO_NEW'
  /** A line of it is not right. */
  | 'RECORDING_DAMAGED'
  /** The session asked no model anything. */
  | 'NOTHING_TO_RECORD'
  /** No person said anything in it, or behind the event from which it is to be run. */
  | 'NOTHING_TO_REPLAY'

export class ReplayError extends HarnessError<ReplayErrorCode> {
  static {
    this.prototype.name = 'ReplayError'
  }
}
