import { HarnessError } from '../../kernel/index.ts'

export type SessionErrorCode =
  /** The event, its data or its place on the surface is not what its type allows. */
  | 'INVALID_EVENT'
  | 'INVALID_HEADER'
  /** The log may be read only; the message says why. */
  | 'READ_ONLY'
  /** The id is taken by a live session, or the session is entered already. */
  | 'SESSION_ALREADY_EXISTS'
  /** The session is not live in this store, or not announced yet. */
  | 'SESSION_NOT_LIVE'
  | 'DUPLICATE_EVENT_TYPE'
  /** A check of the event, or a chain of observers that answer each event with another, may not append. */
  | 'REENTRANT_APPEND'

export class SessionError extends HarnessError<SessionErrorCode> {
  static {
    this.prototype.name = 'SessionError'
  }

  /** The event of a seed that is at fault; everything before it is sound. */
  readonly seq: number | undefined

  constructor(
    code: SessionErrorCode,
    message: string,
    options: ErrorOptions & { readonly seq?: number } = {},
  ) {
    super(code, message, options)
    this.seq = options.seq
  }
}

export type SessionForkErrorCode =
  | 'SESSION_ALREADY_EXISTS'
  | 'SESSION_NOT_FOUND'
  | 'SESSION_NOT_LIVE'
  | 'INVALID_BOUNDARY'
  | 'OPEN_TURN'

export class SessionForkError extends HarnessError<SessionForkErrorCode> {
  static {
    this.prototype.name = 'SessionForkError'
  }
}

/** The log has another format than this harness reads. Not damage: nothing about it is touched. */
export class SessionFormatUnsupportedError extends HarnessError<'FORMAT_UNSUPPORTED'> {
  static {
    this.prototype.name = 'SessionFormatUnsupportedError'
  }

  readonly direction: 'newer' | 'older'

  constructor(subject: string, version: unknown, supported: number) {
    const newer = typeof version === 'number' && version > supported
    const who = newer ? 'by a newer harness; upgrade this one' : 'in a format that is no longer read'
    super(
      'FORMAT_UNSUPPORTED',
      `${subject} was written ${who} (format ${String(version)}, read is ${supported})`,
    )
    this.direction = newer ? 'newer' : 'older'
  }
}
