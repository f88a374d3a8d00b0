import { HarnessError } from '../../kernel/index.ts'

export type BashErrorCode =
  /** The command would have had to be confined, and nothing here can do that, or what does it failed. */
  | 'SANDBOX_UNAVAILABLE'
  /** More access was asked for than the call was given. */
  | 'ESCALATION_UNAVAILABLE'
  /** Nothing here runs commands in the background. */
  | 'BACKGROUND_UNAVAILABLE'

export class BashError extends HarnessError<BashErrorCode> {
  static {
    this.prototype.name = 'BashError'
  }
}
