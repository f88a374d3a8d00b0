import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type {
  MediumReport,
  PrepareOptions,
  RawLog,
  RepairResult,
  SessionHolder,
  SessionRow,
  StoredBatch,
  StoredGap,
  StreamOptions,
} from '../../core/session/index.ts'

/**
 * A place that keeps logs: files, a database, a server. It knows nothing of live sessions.
 *
 * Whoever writes a log has it for itself until it closes the writer; reading needs no right and changes nothing.
 */
export interface Medium {
  readonly name: string
  /** Where a log with this header is, or would be, for people. No I/O. */
  locate(header: SessionHeader): string | undefined
  /** The stored log as far as it can be read, or undefined. Rejects with SESSION_DAMAGED where it has no header. */
  read(id: SessionId, options?: ReadOptions): Promise<StoredLog | undefined>
  /** Changes with every write; undefined where nothing is stored. */
  revision(id: SessionId): Promise<string | undefined>
  list(signal?: AbortSignal): Promise<readonly SessionRow[]>
  /** A writer for a log that is not there yet. Nothing is stored, or held, before its first append. */
  begin(header: SessionHeader): LogWriter
  /** Takes the right to continue a log, and reads it then. Rejects with SESSION_HELD, or where it must not go on. */
  resume(
    id: SessionId,
    options?: ResumeOptions,
  ): Promise<{ readonly log: StoredLog; readonly writer: LogWriter }>
  /** Bytes that the log of `id` names by their hash. */
  artifact(id: SessionId, sha256: string): Promise<Uint8Array | undefined>
  /**
   * What `read` gives, in batches: a long log never needs to be in memory. Rejects with SESSION_NOT_FOUND where nothing
   * is stored, and as `read` does. A log that grows meanwhile may be given up to its new end.
   */
  stream(id: SessionId, options?: StreamOptions): AsyncIterable<StoredBatch>
  /** The stored log as a file for people, or undefined where nothing is stored. Absent = the medium has no such thing. */
  readRaw?(id: SessionId, signal?: AbortSignal): Promise<RawLog | undefined>
  /**
   * Takes the right to write and removes the log with all that belongs to it; false where nothing is stored. Resolves
   * once that is durable. Rejects with SESSION_HELD; a damaged log can be removed.
   */
  remove(id: SessionId, options?: { readonly signal?: AbortSignal | undefined }): Promise<boolean>
  /** Who may write a log now, in whatever program; undefined where nobody may. */
  holder(id: SessionId): Promise<SessionHolder | undefined>
  /** Tells that the log may have changed until the returned function is called. A hint: it may come late or never. */
  watch?(id: SessionId, onChange: () => void): () => void
  /** Checks every byte of a stored log. Damage is a problem in the report; rejects with SESSION_NOT_FOUND. */
  verify(id: SessionId, signal?: AbortSignal): Promise<MediumReport>
  /**
   * Takes the right to write, and puts a sound log in the place of a damaged one in one step; the old one is kept. What
   * another writer made of it is stored as sessions of their own before. Rejects with SESSION_HELD or SESSION_NOT_FOUND,
   * and with SESSION_DAMAGED where nothing can be kept.
   */
  repair(id: SessionId): Promise<RepairResult>
  /** Removes what crashed programs left half made. Never touches a log. */
  sweep?(): Promise<void>
  close(): Promise<void>
}

export interface ReadOptions {
  /** Leaves out earlier events. */
  readonly fromSeq?: number
  readonly signal?: AbortSignal | undefined
}

export interface ResumeOptions extends PrepareOptions {
  readonly signal?: AbortSignal | undefined
}

export interface StoredLog {
  readonly header: SessionHeader
  /** The log has a 'tool/start' for each top-level body that ran. */
  readonly toolStart: boolean
  /** Fresh objects that nobody else holds, contiguous up to the first gap. */
  readonly events: readonly SessionEvent[]
  readonly gaps: readonly StoredGap[]
  readonly revision: string
  /** Who may write it now, where that is another program. */
  readonly holder?: SessionHolder | undefined
  readonly path: string
}

/** The only right to write one log. Calls come one after another. */
export interface LogWriter {
  /**
   * Removes the incomplete end that a crash left, keeping a copy of it, and gives a sentence that says so. The events
   * that could be read from it stay. Does nothing where the end is sound.
   */
  mend(): Promise<string | undefined>
  /**
   * Resolves once the events are durable; the first ones together with the header. Where it rejects, the log is as it
   * was before, and the same events may be given again.
   */
  append(events: readonly SessionEvent[]): Promise<void>
  /** Keeps bytes beside the log; resolves once they are durable. */
  putArtifact(bytes: Uint8Array, type: string): Promise<{ readonly sha256: string; readonly bytes: number }>
  getArtifact(sha256: string): Promise<Uint8Array | undefined>
  /** Gives the right back. */
  close(): Promise<void>
  /**
   * After `close`: takes the right again where nobody wrote meanwhile, to go on without reading. False where that is not
   * so, whatever the reason; then `resume` tells it.
   */
  reopen?(): Promise<boolean>
}
