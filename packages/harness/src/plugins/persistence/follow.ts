import type { SessionEvent, SessionId } from '@dsh/protocol'
import { jsonEquals } from '../../kernel/index.ts'
import type { FollowOptions, Session, StoredBatch } from '../../core/session/index.ts'
import { Doorbell } from './doorbell.ts'
import { notStored, PersistenceError } from './errors.ts'
import type { Medium } from './medium.ts'
import type { Timers } from './write-behind.ts'

/** How long a change may go unnoticed that nobody told of, in ms. */
const followPollMs = 500

export interface FollowHost {
  readonly medium: Medium
  readonly timers: Timers
  /** The session that is live here, once one that ends has ended. */
  live(id: SessionId): Promise<Session | undefined>
  /** Calls `listener` whenever something about the session may have changed here, until the given function is called. */
  onChange(id: SessionId, listener: () => void): () => void
  stored(
    id: SessionId,
    options: { fromSeq: number; signal: AbortSignal | undefined },
  ): AsyncIterable<StoredBatch>
  /** Throws where the store has ended. */
  assertOpen(): void
}

/** Gives the events of one session in order, wherever they are at the time, and waits for more. */
export async function* followSession(
  id: SessionId,
  host: FollowHost,
  options: FollowOptions = {},
): AsyncGenerator<SessionEvent> {
  const { signal } = options
  const bell = new Doorbell(host.timers)
  const stops = [host.onChange(id, bell.ring), host.medium.watch?.(id, bell.ring)]
  signal?.addEventListener('abort', bell.ring, { once: true })
  const follower = new Follower(id, host, options)
  try {
    while (!isAborted(signal)) {
      yield* untilAborted(follower.round(), signal)
      if (follower.isOver) return
      await bell.wait(followPollMs)
    }
  } finally {
    signal?.removeEventListener('abort', bell.ring)
    for (const stop of stops) stop?.()
  }
}

async function* untilAborted(
  events: AsyncIterable<SessionEvent>,
  signal: AbortSignal | undefined,
): AsyncGenerator<SessionEvent> {
  for await (const event of events) {
    if (isAborted(signal)) return
    yield event
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

/** Looks for events again and again, each time where they are then. */
class Follower {
  /** Nothing will follow. */
  isOver = false
  readonly #id: SessionId
  readonly #host: FollowHost
  readonly #whileOpen: boolean
  readonly #cursor: Cursor
  readonly #stored: StoredRounds

  constructor(id: SessionId, host: FollowHost, { fromSeq = 0, whileOpen = false, signal }: FollowOptions) {
    this.#id = id
    this.#host = host
    this.#whileOpen = whileOpen
    this.#cursor = new Cursor(id, fromSeq)
    this.#stored = new StoredRounds(id, host, this.#cursor, signal)
  }

  async *round(): AsyncGenerator<SessionEvent> {
    this.#host.assertOpen()
    const live = await this.#host.live(this.#id)
    if (live !== undefined) return yield* this.#cursor.through(live)
    // Whoever writes gives the log back after the last write, so what is read from here on is all there is.
    const isClosed = this.#whileOpen && (await this.#host.medium.holder(this.#id)) === undefined
    yield* this.#stored.next()
    this.isOver = this.#stored.isGone || (isClosed && !this.#stored.isDoubtful)
  }
}

/** How far a reader has come. */
class Cursor {
  readonly #id: SessionId
  next: number
  last: SessionEvent | undefined
  #session: Session | undefined

  constructor(id: SessionId, fromSeq: number) {
    this.#id = id
    this.next = fromSeq
  }

  /** Whether there ever was a session. */
  get isKnown(): boolean {
    return this.#session !== undefined || this.last !== undefined
  }

  *through(session: Session): Generator<SessionEvent> {
    if (session !== this.#session) this.check(session.at(this.next - 1))
    this.#session = session
    while (this.next < session.length) {
      const event = session.at(this.next)
      if (event === undefined) return
      this.take(event)
      yield event
    }
  }

  take(event: SessionEvent): void {
    this.last = event
    this.next = event.seq + 1
  }

  /** The last event that was given is still there. */
  check(event: SessionEvent | undefined): void {
    if (this.last === undefined || (event !== undefined && jsonEquals(event, this.last))) return
    throw new PersistenceError(
      'LOG_REPLACED',
      `the log of session "${this.#id}" no longer has event ${this.last.seq} as it was: it was repaired, or removed and begun again`,
    )
  }
}

/** Reads a stored log on, each time that its revision has changed. */
class StoredRounds {
  readonly #id: SessionId
  readonly #host: FollowHost
  readonly #cursor: Cursor
  readonly #signal: AbortSignal | undefined
  #revision: string | undefined
  /** A gap was met in the last round. While somebody writes it may only have looked like one. */
  isDoubtful = false
  /** The log was there, and is no more. */
  isGone = false

  constructor(id: SessionId, host: FollowHost, cursor: Cursor, signal: AbortSignal | undefined) {
    this.#id = id
    this.#host = host
    this.#cursor = cursor
    this.#signal = signal
  }

  async *next(): AsyncGenerator<SessionEvent> {
    // Before the events: what comes meanwhile is seen as another revision next time.
    const revision = await this.#host.medium.revision(this.#id)
    if (revision === undefined) return this.#leave()
    if (revision === this.#revision && !this.isDoubtful) return
    try {
      yield* this.#read()
      this.#revision = revision
    } catch (error) {
      if (!isAborted(this.#signal)) throw error
    }
  }

  async *#read(): AsyncGenerator<SessionEvent> {
    const { last, next } = this.#cursor
    const fromSeq = last?.seq ?? next
    let isFirst = last !== undefined
    for await (const { gap, events } of this.#host.stored(this.#id, { fromSeq, signal: this.#signal })) {
      if (gap !== undefined) return this.#doubt(gap.reason)
      for (const event of events) {
        if (isFirst) this.#cursor.check(event)
        else {
          this.#cursor.take(event)
          yield event
        }
        isFirst = false
      }
    }
    if (isFirst) this.#cursor.check(undefined)
    this.isDoubtful = false
  }

  #doubt(reason: string): void {
    if (this.isDoubtful)
      throw new PersistenceError(
        'SESSION_DAMAGED',
        `the log of session "${this.#id}" is damaged: ${reason}`,
        {
          sessionId: this.#id,
        },
      )
    this.isDoubtful = true
  }

  #leave(): void {
    if (this.#revision === undefined && !this.#cursor.isKnown) throw notStored(this.#id)
    this.isGone = true
  }
}
