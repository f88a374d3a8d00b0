import { sessionFormatVersion } from '@dsh/protocol'
import type { SessionEvent, SessionId } from '@dsh/protocol'
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
  readonly lock?: string | undefined
  readonly sessionId?: SessionId | undefined
}

export class PersistenceError extends HarnessError<PersistenceErrorCode> {
  static {
    this.prototype.name = 'PersistenceError'
  }

  /** Who has the session open, with SESSION_HELD. */
  readonly holder: SessionHolder | undefined
  /** Where a lock lies that does not say whose it is, with SESSION_HELD. */
  readonly lock: string | undefined
  /** Which session is damaged, with SESSION_DAMAGED, where its own log is. */
  readonly sessionId: SessionId | undefined

  constructor(code: PersistenceErrorCode, message: string, options: PersistenceErrorOptions = {}) {
    super(code, message, options)
    this.holder = options.holder
    this.lock = options.lock
    this.sessionId = options.sessionId
  }
}

export function notStored(id: SessionId): PersistenceError {
  return new PersistenceError('SESSION_NOT_FOUND', `session "${id}" is not stored`)
}

export function damagedLog(id: SessionId, reason: string, path: string): PersistenceError {
  const message = `the log of session "${id}" is damaged: ${reason}: ${path}`
  return new PersistenceError('SESSION_DAMAGED', message, { sessionId: id })
}

/** Throws STALE_APPEND for events that do not begin at `next`, or have a gap. */
export function assertNext(events: readonly SessionEvent[], next: number): void {
  for (const [index, { seq }] of events.entries()) {
    if (seq === next + index) continue
    throw new PersistenceError(
      'STALE_APPEND',
      `seq ${seq} does not continue the log, expected ${next + index}`,
    )
  }
}

const systemReasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left on the device',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EIO: 'the device failed',
  EMFILE: 'too many files are open',
  ENOENT: 'its file or folder is gone',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'a folder lies where a file should',
  ENXIO: 'what lies there is no file',
  ELOOP: 'links lead in a circle',
  ENAMETOOLONG: 'the path is too long',
}

/** What the errno name `code` means, for a person. */
export function systemReason(code: string): string | undefined {
  return systemReasons[code]
}

export function newerFormatText(version: number, path: string): string {
  return `the log was written by a newer dsh (format ${version}, this one knows ${sessionFormatVersion}): ${path}`
}
