import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type { Session } from './log.ts'

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
  /** Resolves once the events are durable. They continue the log: the first has the seq after the last stored one. */
  append(id: SessionId, events: readonly SessionEvent[]): Promise<void>
  /** Reads, repairs and reserves a cold session for resuming. Rejects for a live or held one, or with damage. */
  prepare(id: SessionId, signal?: AbortSignal, options?: PrepareOptions): Promise<SessionPreparation>
  /** Like `prepare`, without keeping the reservation. A live session is flushed; rejects while its turn is open. */
  load(id: SessionId, signal?: AbortSignal): Promise<StoredSession>
  /** The same view without writing anything; a live id gives its current events. */
  inspect(id: SessionId, signal?: AbortSignal): Promise<StoredSession>
  /** What `inspect` gives as a detached session to look at; nothing can be appended, and it says why. */
  view(id: SessionId, signal?: AbortSignal): Promise<Session>
  /** The stored events from `fromSeq` on, as they are, unrepaired; none behind the end. */
  readFrom(id: SessionId, fromSeq: number, signal?: AbortSignal): Promise<StoredSession>
  /** Every stored session; one that cannot be read is a row with a reason, never a failed list. */
  list(signal?: AbortSignal): Promise<readonly SessionRow[]>
  /** The readable sessions with a mark that is the same exactly as long as nothing was written. */
  listSnapshots(signal?: AbortSignal): Promise<readonly SessionSnapshot[]>
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

export interface SessionSnapshot {
  readonly header: SessionHeader
  readonly revision: string
}

export type SessionRow =
  | {
      readonly id: SessionId
      readonly header: SessionHeader
      readonly updatedAt: number
      readonly path: string
    }
  | { readonly id: SessionId; readonly problem: string; readonly path: string }
