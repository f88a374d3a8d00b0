import type { SessionId } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import type { LogWriter } from './medium.ts'

/** The right to write a log, kept for a session that is not published yet. */
export interface Reservation {
  readonly session: Session
  readonly writer: LogWriter
  /** How many events of the session the log holds. */
  readonly length: number
  /** How many the session has as long as nobody touches it. */
  readonly untouched: number
  /** Which event types were known when the session was made: they decide what is right in it. */
  readonly typesVersion: number
}

/** Sessions that were prepared and given back as they were, the last ones, for whoever asks for them next. */
export class PreparedSessions {
  readonly #limit: number
  readonly #kept = new Map<SessionId, Reservation>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Its writer is closed. */
  keep(reservation: Reservation): void {
    const { session, writer, untouched } = reservation
    if (writer.reopen === undefined || session.length !== untouched) return
    this.#kept.set(session.id, reservation)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#limit) return
      this.#kept.delete(oldest)
    }
  }

  /** The one of `id`, with the right to write again, if neither it nor its log has changed; it is kept no longer. */
  async take(id: SessionId, typesVersion: number): Promise<Reservation | undefined> {
    const kept = this.#kept.get(id)
    if (kept === undefined) return undefined
    this.#kept.delete(id)
    const isFresh = kept.typesVersion === typesVersion && kept.session.length === kept.untouched
    // What reopening fails at is told by the resumption that follows.
    const isOpen = isFresh && (await kept.writer.reopen?.().catch(() => false))
    return isOpen === true ? kept : undefined
  }

  drop(id: SessionId): void {
    this.#kept.delete(id)
  }
}
