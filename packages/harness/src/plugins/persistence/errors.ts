import { sessionFormatVersion } from '@dsh/protocol'
import { HarnessError } from '../../kernel/index.ts'
import type { SessionHolder } from '../../core/session/index.ts'

export type PersistenceErrorCode =
  | 'SESSION_NOT_FOUND'
  /** The id has a stored log already, or one folder would serve two ids. */
  | 'SESSION_EXISTS'
  /** One id is stored in two places. */
  | 'SESSION_AMBIGUOUS'
  /** The session is live in this program, or being prepared. */
  | 'SESSION_LIVE'
  /** Another program has the session open. */
  | 'SESSION_HELD'
  /** Another program or person took the lock away. */
  | 'LOCK_LOST'
  | 'SESSION_DAMAGED'
  | 'SESSION_FORMAT_NEWER'
  /** The log can be read but must not be continued. */
  | 'SESSION_READ_ONLY'
  /** Events do not continue the stored log. */
  | 'STALE_APPEND'
  /** The log is no longer the one that was read before: it was repaired, or removed and begun again. */
  | 'LOG_REPLACED'
  /** The log changed during each of several reads, so that none could be trusted. */
  | 'LOG_CHANGING'
  /** The medium cannot do this. */
  | 'NOT_SUPPORTED'
  /** The medium could not be read or written; the cause says why. */
  | 'STORE_FAILED'
  | 'STORE_CLOSED'

interface PersistenceErrorOptions extends ErrorOptions {
  readonly holder?: SessionHolder | undefined
}

export class PersistenceError extends HarnessError<PersistenceErrorCode> {
  static {
    this.prototype.name = 'PersistenceError'
  }

  /** Who has the session open, with SESSION_HELD. */
  readonly holder: SessionHolder | undefined

  constructor(code: PersistenceErrorCode, message: string, options: PersistenceErrorOptions = {}) {
    super(code, message, options)
    this.holder = options.holder
  }
}

export function newerFormatText(version: number, path: string): string {
  return `the log was written by a newer dsh (format ${version}, this one knows ${sessionFormatVersion}): ${path}`
}
