import { HarnessError } from '../../kernel/index.ts'

export type LoopErrorCode =
  /** A session is to be resumed and nothing keeps sessions. */
  | 'NO_PERSISTENCE'
  /** A session whose last turn is open cannot be driven. */
  | 'OPEN_TURN'
  /** The configured agents contradict each other or themselves. */
  | 'INVALID_AGENTS'

export class LoopError extends HarnessError<LoopErrorCode> {
  static {
    this.prototype.name = 'LoopError'
  }
}
