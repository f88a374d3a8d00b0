import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type { Session } from './log.ts'

/** One Session that is not published yet; disposing gives it back to whoever prepared it, once. */
export interface SessionPreparation {
  readonly session: Session
  [Symbol.dispose](): void
}

/**
 * Where sessions are kept; a store plugin provides it as `ctx.sessionPersistence`.
 *
 * The unit is the event: there is no second model of messages. Nothing on a read path ever writes.
 */
export interface SessionPersistence {
  /** Reads, repairs and reserves a cold session for resuming. Rejects for a live or held one, or with damage. */
  prepare(id: SessionId, signal?: AbortSignal): Promise<SessionPreparation>
  /** The same view without writing anything; a live id gives its current events. */
  inspect(id: SessionId, signal?: AbortSignal): Promise<StoredSession>
  /** Every stored session; one that cannot be read is a row with a reason, never a failed list. */
  list(signal?: AbortSignal): Promise<readonly SessionRow[]>
}

export interface StoredSession {
  readonly header: SessionHeader
  readonly events: readonly SessionEvent[]
  /** Why nothing may be appended, where that is so. */
  readonly readOnly?: string
  /** What could not be read, and where. */
  readonly gaps?: readonly {
    readonly fromSeq: number
    readonly toSeq: number
    readonly bytes: number
    readonly reason: string
  }[]
}

export type SessionRow =
  | {
      readonly id: SessionId
      readonly header: SessionHeader
      readonly updatedAt: number
      readonly path: string
    }
  | { readonly id: SessionId; readonly problem: string; readonly path: string }
