import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import { adopt, KeyedLocks, messageOf } from '../../kernel/index.ts'
import type { Session, SessionStore } from '../../core/session/index.ts'
import { PersistenceError } from './errors.ts'
import type { LogWriter, Medium, ResumeOptions } from './medium.ts'
import type { PersistenceNotice } from './notice.ts'
import { restoreSession } from './restore.ts'
import { Track } from './track.ts'
import type { OpenedLog, TrackHost } from './track.ts'
import type { Timers } from './write-behind.ts'

export interface CoordinatorOptions {
  readonly medium: Medium
  readonly sessions: SessionStore
  /** How long the first event of a batch waits for others, in ms. */
  readonly delayMs: number
  readonly timers: Timers
  readonly notice: (notice: PersistenceNotice) => void
}

/** The right to write a log, kept for a session that is not published yet. */
export interface Reservation extends OpenedLog {
  readonly session: Session
}

interface ColdLog {
  readonly header: SessionHeader
  readonly stored: readonly SessionEvent[]
  readonly writer: LogWriter
}

/**
 * Who writes which log.
 *
 * A live session has a track, which writes what the session has and the log lacks. A session that is being resumed is
 * reserved until it is published or let go. Whatever writes one log happens one after another.
 */
export class Coordinator {
  readonly medium: Medium
  readonly sessions: SessionStore
  readonly #host: TrackHost
  readonly #locks = new KeyedLocks<SessionId>()
  readonly #tracks = new Map<SessionId, Track>()
  readonly #reserved = new Map<SessionId, Reservation>()
  /** Headers of ids that `create` claimed and nothing was appended to yet. */
  readonly #claimed = new Map<SessionId, SessionHeader>()

  #isClosed = false

  constructor({ medium, sessions, delayMs, timers, notice }: CoordinatorOptions) {
    this.medium = medium
    this.sessions = sessions
    this.#host = { medium, locks: this.#locks, delayMs, timers, notice }
  }

  create(header: SessionHeader): Promise<void> {
    const own = adopt(header)
    const { id } = own
    return this.#locks.run(id, async () => {
      this.#assertFree(id)
      if (this.#claimed.has(id) || (await this.medium.revision(id)) !== undefined)
        throw new PersistenceError('SESSION_EXISTS', `session "${id}" exists already`)
      this.sessions.prepare(id, { meta: own })
      this.#claimed.set(id, own)
    })
  }

  append(id: SessionId, events: readonly SessionEvent[]): Promise<void> {
    const own = events.map(event => adopt(event))
    return this.#locks.run(id, async () => {
      this.#assertFree(id)
      if (own.length === 0) return
      const { header, stored, writer } = await this.#openCold(id)
      try {
        // What is accepted here must be accepted when it is read.
        this.sessions.prepare(id, { seed: [...stored, ...own], meta: header, seedSource: 'persistence' })
        await writer.append(own)
        this.#claimed.delete(id)
      } finally {
        await writer.close()
      }
    })
  }

  /** Throws where the id belongs to somebody else; then the session is not published. */
  claim(session: Session): void {
    const { id } = session
    if (session.readOnly !== undefined || this.#tracks.get(id)?.session === session) return
    const reservation = this.#reserved.get(id)
    if (reservation !== undefined && reservation.session !== session)
      throw new PersistenceError('SESSION_LIVE', `session "${id}" is being resumed`)
    const other = this.#tracks.get(id)
    if (other !== undefined && other.retirement === undefined)
      throw new PersistenceError(
        'SESSION_LIVE',
        `session "${id}" is live as another object, or not stored yet`,
      )
    this.#reserved.delete(id)
    this.#claimed.delete(id)
    this.#tracks.set(id, new Track(session, this.#host, { opened: reservation, after: other?.retirement }))
  }

  touch(session: Session): void {
    this.#trackOf(session)?.touch()
  }

  isTracked(session: Session): boolean {
    return this.#trackOf(session) !== undefined
  }

  async flush(session: Session): Promise<void> {
    await this.#trackOf(session)?.flush()
  }

  /** Stores the rest of a session that is no longer live. Never rejects. */
  async retire(session: Session): Promise<void> {
    const track = this.#trackOf(session)
    if (track === undefined) return
    try {
      await track.retire()
      this.#forget(track)
    } catch (error) {
      this.#host.notice({ id: session.id, code: 'RETIRE_FAILED', message: messageOf(error) })
    }
  }

  /** Stores everything and closes the medium. Rejects with all that could not be stored. */
  async shutDown(): Promise<void> {
    this.#isClosed = true
    const failures: unknown[] = []
    const collect = (error: unknown): void => void failures.push(error)
    const tracks = [...this.#tracks.values()]
    await Promise.all(tracks.map(track => track.flush().catch(collect)))
    await Promise.all(tracks.map(track => track.close().catch(collect)))
    await Promise.all(
      [...this.#reserved.values()].map(reservation => this.release(reservation).catch(collect)),
    )
    await this.#locks.settled()
    this.#tracks.clear()
    await this.medium.close().catch(error => {
      if (failures.length === 0) collect(error)
    })
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `${this.medium.name} could not store everything: ${String(failures[0])}`,
      )
  }

  #trackOf(session: Session): Track | undefined {
    const track = this.#tracks.get(session.id)
    return track?.session === session ? track : undefined
  }

  #forget(track: Track): void {
    if (this.#tracks.get(track.session.id) === track) this.#tracks.delete(track.session.id)
  }

  /** The live or reserved session of an id, once one that ends has ended. */
  async liveSession(id: SessionId): Promise<Session | undefined> {
    const track = this.#tracks.get(id)
    if (track?.retirement !== undefined) {
      await track.retirement.catch(() => undefined)
      return this.#tracks.get(id)?.session ?? this.#reserved.get(id)?.session
    }
    return track?.session ?? this.#reserved.get(id)?.session
  }

  async reserve(
    id: SessionId,
    options: ResumeOptions,
  ): Promise<{ readonly reservation: Reservation; readonly notices: readonly string[] }> {
    await this.#settleRetirement(id)
    return this.#locks.run(
      id,
      async () => {
        this.#assertFree(id)
        const { log, writer } = await this.medium.resume(id, options)
        try {
          const { session, closers } = restoreSession(log, this.sessions)
          const notice = await writer.mend()
          if (notice !== undefined) this.#host.notice({ id, code: 'TAIL_CUT', message: notice })
          await writer.append(closers)
          options.signal?.throwIfAborted()
          // The store may have ended meanwhile, and would not know of a reservation made now.
          this.#assertOpen()
          const length = log.events.length + closers.length
          const reservation = { session, writer, length }
          this.#reserved.set(id, reservation)
          return { reservation, notices: notice === undefined ? [] : [notice] }
        } catch (error) {
          await writer.close()
          throw error
        }
      },
      options.signal,
    )
  }

  /** Gives a session that was not published back. Never rejects. */
  async release(reservation: Reservation): Promise<void> {
    const { id } = reservation.session
    if (this.#reserved.get(id) !== reservation) return
    this.#reserved.delete(id)
    try {
      await this.#locks.run(id, () => reservation.writer.close())
    } catch (error) {
      this.#host.notice({ id, code: 'RETIRE_FAILED', message: messageOf(error) })
    }
  }

  /** A session whose end could not be stored is tried once more; what it fails at then is the caller's to know. */
  async #settleRetirement(id: SessionId): Promise<void> {
    const track = this.#tracks.get(id)
    if (track === undefined || this.sessions.get(id) === track.session) return
    await track.retire()
    this.#forget(track)
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new PersistenceError('STORE_CLOSED', `${this.medium.name} is closed`)
  }

  #assertFree(id: SessionId): void {
    this.#assertOpen()
    if (this.#tracks.has(id)) throw new PersistenceError('SESSION_LIVE', `session "${id}" is live`)
    if (this.#reserved.has(id)) throw new PersistenceError('SESSION_LIVE', `session "${id}" is being resumed`)
  }

  async #openCold(id: SessionId): Promise<ColdLog> {
    const header = this.#claimed.get(id)
    if (header !== undefined) return { header, stored: [], writer: this.medium.begin(header) }
    const { log, writer } = await this.medium.resume(id)
    return { header: log.header, stored: log.events, writer }
  }
}
