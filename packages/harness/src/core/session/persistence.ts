import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type { Session } from './log.ts'
import type { MediumReport, RepairResult } from './report.ts'

/** One Session that is not published yet; disposing gives it back to whoever prepared it, once. */
export interface SessionPreparation {
  readonly session: Session
  /** What the preparation had to mend, one sentence each, for the person. */
  readonly notices?: readonly string[]
  [Symbol.dispose](): void
}

/**
 * Where sessions are kept; a store plugin provides it as `ctx.sessionPersistence`.
 *
 * The unit is the event: there is no second model of messages. Nothing on a read path ever writes.
 */
export interface SessionPersistence {
  /** Where a session with this header is kept, or would be. Looks at nothing and permits nothing. */
  locate(header: SessionHeader): string | undefined
  /** Claims the id for events that no live session writes. Nothing is stored before the first of them. */
  create(header: SessionHeader): Promise<void>
  /**
   * Resolves once the events are durable, and before them the contents that they name. They continue the log: the first
   * has the seq after the last stored one.
   */
  append(id: SessionId, events: readonly SessionEvent[], contents?: readonly StoredContent[]): Promise<void>
  /** Reads, repairs and reserves a cold session for resuming. Rejects for a live or held one, or with damage. */
  prepare(id: SessionId, signal?: AbortSignal, options?: PrepareOptions): Promise<SessionPreparation>
  /** Like `prepare`, without keeping the reservation. A live session is flushed; rejects while its turn is open. */
  load(id: SessionId, signal?: AbortSignal): Promise<StoredSession>
  /** The same view without writing anything; a live id gives its current events. */
  inspect(id: SessionId, signal?: AbortSignal): Promise<StoredSession>
  /** What `inspect` gives as a detached session to look at; nothing can be appended, and it says why. */
  view(id: SessionId, signal?: AbortSignal): Promise<Session>
  /** The session of what `inspect` gave. Its events then belong to the session. */
  viewOf(stored: StoredSession): Session
  /** The stored events from `fromSeq` on, as they are, unrepaired; none behind the end. */
  readFrom(id: SessionId, fromSeq: number, signal?: AbortSignal): Promise<StoredSession>
  /**
   * What `inspect` gives, unrepaired and in bounded memory. Each event is checked for itself; one that is not right is a
   * gap. Rejects with SESSION_NOT_FOUND.
   */
  stream(id: SessionId, options?: StreamOptions): AsyncIterable<StoredBatch>
  /**
   * The events of a session, then each that is added, by whatever program, until the signal aborts or the session is
   * removed. Never writes. Of a session that is live here, events come before they are durable. Rejects with
   * LOG_REPLACED where the log no longer continues what was given, and with SESSION_DAMAGED where it is damaged.
   */
  follow(id: SessionId, options?: FollowOptions): AsyncIterable<SessionEvent>
  /** Whether `readRaw` can give anything. */
  readonly supportsRawArtifacts: boolean
  /** The stored log as a file for people, undefined where nothing is stored. Rejects with NOT_SUPPORTED. */
  readRaw(id: SessionId, signal?: AbortSignal): Promise<RawLog | undefined>
  /** Removes a stored session with all that belongs to it, for good; false where nothing is stored. Rejects for a live or held one. */
  remove(id: SessionId): Promise<boolean>
  /** Checks what is stored of a session byte by byte, and nothing above that. */
  verify(id: SessionId, signal?: AbortSignal): Promise<MediumReport>
  /** Puts a sound log in the place of a damaged one, which is kept. Rejects for a live or held one. */
  repair(id: SessionId): Promise<RepairResult>
  /** Every stored session; one that cannot be read is a row with a reason, never a failed list. */
  list(signal?: AbortSignal): Promise<readonly SessionRow[]>
  /** The readable sessions with a mark that is the same exactly as long as nothing was written. */
  listSnapshots(signal?: AbortSignal): Promise<readonly SessionSnapshot[]>
}

/** Bytes that events name by their hash. */
export interface StoredContent {
  readonly bytes: Uint8Array
  readonly mediaType: string
}

export interface PrepareOptions {
  /** Takes the right to write from this holder, who writes no more then. For a person who knows that it is gone. */
  readonly takeFrom?: SessionHolder
}

/** A program that has a session open for writing. */
export interface SessionHolder {
  readonly pid: number
  /** Epoch milliseconds. */
  readonly since: number
  readonly host: string
  /** Tells this opening from every other. */
  readonly nonce: string
}

export interface StoredSession {
  readonly header: SessionHeader
  readonly events: readonly SessionEvent[]
  /** Why nothing may be appended, where that is so. */
  readonly readOnly?: string
  /** Who has it open, where another program does. */
  readonly holder?: SessionHolder
  /** What could not be read, and where. */
  readonly gaps?: readonly StoredGap[]
}

/** A place where a log is damaged. Seqs that are lost: `fromSeq`…`toSeq`, none where `toSeq` is smaller. */
export interface StoredGap {
  readonly fromSeq: number
  readonly toSeq: number
  readonly bytes: number
  readonly reason: string
  /** What can be read behind it, up to the next gap; no part of the Session. */
  readonly events: readonly SessionEvent[]
}

export interface StreamOptions {
  /** Leaves out earlier events. */
  readonly fromSeq?: number | undefined
  /** The last event that is given, if it is there. */
  readonly toSeq?: number | undefined
  /** Gives each event as it is stored, one that is not right too. */
  readonly isUnchecked?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** A part of a log, of bounded size; the next one continues it. */
export interface StoredBatch {
  /** What is lost before `events`. From the first gap on nothing belongs to the Session. */
  readonly gap?: StreamGap
  /** Fresh objects that nobody else holds, contiguous. */
  readonly events: readonly SessionEvent[]
}

/** In a stream the readable events behind damage stand in the batches, not in the gap. */
export type StreamGap = Omit<StoredGap, 'events'>

export interface RawLog {
  readonly header: SessionHeader
  readonly filename: string
  /** JSON lines, decoded. */
  readonly content: Uint8Array
}

export interface FollowOptions {
  /** The first event that is given. Default 0. */
  readonly fromSeq?: number | undefined
  /** Ends, too, once nobody has the session open any more and everything was given. */
  readonly whileOpen?: boolean | undefined
  /** Ends the iteration; that is no failure. */
  readonly signal?: AbortSignal | undefined
}

export interface SessionSnapshot {
  readonly header: SessionHeader
  readonly revision: string
}

export type SessionRow = ReadableRow | UnreadableRow

export interface ReadableRow {
  readonly id: SessionId
  readonly header: SessionHeader
  readonly updatedAt: number
  readonly path: string
  /** The same exactly as long as nothing was written; absent where the store has no such mark. */
  readonly revision?: string
  /** What the log takes where it is stored. */
  readonly bytes?: number
  /** Who has it open for writing. */
  readonly holder?: SessionHolder | undefined
}

/** A stored session of which no more can be told than why it cannot be read. */
export interface UnreadableRow {
  readonly id: SessionId
  readonly problem: string
  readonly path: string
}
