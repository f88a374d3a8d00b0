import { HarnessError } from '../../kernel/index.ts'

export type PtyErrorCode =
  /** A backend of this type is registered already. */
  | 'DUPLICATE_BACKEND'
  /** The owner has, or is opening, a session of this name. */
  | 'DUPLICATE_NAME'
  /** The session is another agent's. */
  | 'FOREIGN_SESSION'
  | 'NO_BACKEND'
  /** The owner has no such session; the message says why it was closed where that is known. */
  | 'NO_SESSION'
  /** The agent has ended, or is not the one that lives under its id. */
  | 'OWNER_NOT_LIVE'
  /** Something was sent to the session that has not settled. */
  | 'SEND_ACTIVE'
  | 'SERVICE_DISPOSING'
  /** The shell did not come up, or its folder may not be looked at. */
  | 'SHELL_FAILED'

export class PtyError extends HarnessError<PtyErrorCode> {
  static {
    this.prototype.name = 'PtyError'
  }
}
