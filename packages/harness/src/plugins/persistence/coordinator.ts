import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import { adopt, KeyedLocks, messageOf, unlessAborted } from '../../kernel/index.ts'
import type { RepairResult, Session, SessionStore, StoredContent } from '../../core/session/index.ts'
import { PersistenceError } from './errors.ts'
import type { LogWriter, Medium, ResumeOptions } from './medium.ts'
import type { PersistenceNotice } from './notice.ts'
import { PreparedSessions } from './prepared.ts'
import type { Reservation } from './prepared.ts'
import { restoreSession } from './restore.ts'
import { Track } from './track.ts'
import type { TrackHost } from './track.ts'
import type { Timers } from './write-behind.ts'

export interface CoordinatorOptions {
  readonly medium: Medium
  readonly sessions: SessionStore
  /** How long the first event of a batch waits for others, in ms. */
  readonly delayMs: number
  readonly timers: Timers
  /** How many sessions that were prepared and given back untouched are kept for the next who asks. */
  readonly preparedSessionCacheSize: number
  readonly notice: (notice: PersistenceNotice) => void
}

interface Opened {
  readonly reservation: Reservation
  /** What had to be mended, for the person. */
  readonly notices: readonly string[]
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
  readonly #prepared: PreparedSessions
  readonly #listeners = new Map<SessionId, Set<() => void>>()

  #isClosed = false

  constructor(options: CoordinatorOptions) {
    const { medium, sessions, delayMs, timers, notice } = options
    this.medium = medium
    this.sessions = sessions
    this.#prepared = new PreparedSessions(options.preparedSessionCacheSize)
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

  append(
    id: SessionId,
    events: readonly SessionEvent[],
    contents: readonly StoredContent[] = [],
  ): Promise<void> {
    const own = events.map(event => adopt(event))
    return this.#locks.run(id, async () => {
      this.#assertFree(id)
      if (own.length === 0) return
      this.#prepared.drop(id)
      const { header, stored, writer } = await this.#openCold(id)
      try {
        // What is accepted here must be accepted when it is read.
        this.sessions.prepare(id, { seed: [...stored, ...own], meta: header, seedSource: 'persistence' })
        for (const { bytes, mediaType } of contents) await writer.putArtifact(bytes, mediaType)
        await writer.append(own)
        this.#claimed.delete(id)
      } finally {
        await writer.close()
        this.#tell(id)
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
    const claimed = this.#claimed.get(id)
    if (claimed !== undefined && claimed.cwd !== session.header.cwd)
      throw new PersistenceError('SESSION_EXISTS', `session "${id}" was created for another folder`)
    this.#reserved.delete(id)
    this.#claimed.delete(id)
    this.#prepared.drop(id)
    this.#tracks.set(id, new Track(session, this.#host, { opened: reservation, after: other?.retirement }))
    this.#tell(id)
  }

  touch(session: Session): void {
    const track = this.#trackOf(session)
    if (track === undefined) return
    track.touch()
    this.#tell(session.id)
  }

  /** Calls `listener` whenever a session of the id may have changed here, until the given function is called. */
  onChange(id: SessionId, listener: () => void): () => void {
    const listeners = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) this.#listeners.delete(id)
    }
  }

  #tell(id: SessionId): void {
    if (this.#listeners.size === 0) return
    for (const listener of this.#listeners.get(id) ?? []) listener()
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
      this.#tell(session.id)
    } catch (error) {
      this.#host.notice({ id: session.id, code: 'RETIRE_FAILED', message: messageOf(error) })
    }
  }

  /** Stores everything and closes the medium. Rejects with all that could not be stored. */
  async shutDown(): Promise<void> {
    this.#isClosed = true
    for (const id of this.#listeners.keys()) this.#tell(id)
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
  async liveSession(id: SessionId, signal?: AbortSignal): Promise<Session | undefined> {
    return (await this.trackedSession(id, signal)) ?? this.#reserved.get(id)?.session
  }

  /** The session of an id that is live here, once one that ends has ended. */
  async trackedSession(id: SessionId, signal?: AbortSignal): Promise<Session | undefined> {
    const retirement = this.#tracks.get(id)?.retirement?.catch(() => undefined)
    if (retirement !== undefined) await unlessAborted(retirement, signal)
    return this.#tracks.get(id)?.session
  }

  /** Removes what is stored; false where nothing is. */
  remove(id: SessionId): Promise<boolean> {
    return this.#withFree(id, () => {
      this.#claimed.delete(id)
      return this.medium.remove(id)
    })
  }

  repair(id: SessionId): Promise<RepairResult> {
    return this.#withFree(id, () => this.medium.repair(id))
  }

  /** Runs what changes a stored log that nobody here has open. */
  async #withFree<T>(id: SessionId, job: () => Promise<T>): Promise<T> {
    if (this.#tracks.has(id)) await this.#settleRetirement(id)
    return this.#locks.run(id, async () => {
      this.#assertFree(id)
      this.#prepared.drop(id)
      try {
        return await job()
      } finally {
        this.#tell(id)
      }
    })
  }

  async reserve(id: SessionId, options: ResumeOptions): Promise<Opened> {
    // In this very job where nothing has to be waited for: who asks first comes first.
    if (this.#tracks.has(id)) await unlessAborted(this.#settleRetirement(id), options.signal)
    return this.#locks.run(
      id,
      async () => {
        this.#assertFree(id)
        const { reservation, notices } = await this.#open(id, options)
        try {
          options.signal?.throwIfAborted()
          // The store may have ended meanwhile, and would not know of a reservation made now.
          this.assertOpen()
        } catch (error) {
          await reservation.writer.close()
          throw error
        }
        this.#reserved.set(id, reservation)
        return { reservation, notices }
      },
      options.signal,
    )
  }

  async #open(id: SessionId, options: ResumeOptions): Promise<Opened> {
    const typesVersion = this.sessions.eventTypesVersion
    if (options.takeFrom === undefined) {
      const kept = await this.#prepared.take(id, typesVersion)
      if (kept !== undefined) return { reservation: kept, notices: [] }
    }
    const { log, writer } = await this.medium.resume(id, options)
    try {
      const { session, closers } = restoreSession(log, this.sessions)
      const notice = await writer.mend()
      if (notice !== undefined) this.#host.notice({ id, code: 'TAIL_CUT', message: notice })
      await writer.append(closers)
      const length = log.events.length + closers.length
      // What was made of a log that had to be repaired is not kept: it is read again.
      const untouched = notice === undefined && closers.length === 0 ? session.length : -1
      const reservation = { session, writer, length, untouched, typesVersion }
      return { reservation, notices: notice === undefined ? [] : [notice] }
    } catch (error) {
      await writer.close()
      throw error
    }
  }

  /** Gives a session that was not published back. Never rejects. */
  async release(reservation: Reservation): Promise<void> {
    const { id } = reservation.session
    if (this.#reserved.get(id) !== reservation) return
    this.#reserved.delete(id)
    try {
      await this.#locks.run(id, async () => {
        await reservation.writer.close()
        this.#prepared.keep(reservation)
      })
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

  assertOpen(): void {
    if (this.#isClosed) throw new PersistenceError('STORE_CLOSED', `${this.medium.name} is closed`)
  }

  #assertFree(id: SessionId): void {
    this.assertOpen()
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
