import type { ImageBlock, SessionEvent, SessionId } from '@dsh/protocol'
import { jsonEquals, messageOf } from '../../kernel/index.ts'
import type { KeyedLocks } from '../../kernel/index.ts'
import { deriveEventMessage } from '../../core/session/index.ts'
import type { ArtifactBacking, Session } from '../../core/session/index.ts'
import { PersistenceError } from './errors.ts'
import type { LogWriter, Medium, StoredLog } from './medium.ts'
import type { PersistenceNotice } from './notice.ts'
import { WriteBehind } from './write-behind.ts'
import type { Timers } from './write-behind.ts'

export interface TrackHost {
  readonly medium: Medium
  readonly locks: KeyedLocks<SessionId>
  readonly delayMs: number
  readonly timers: Timers
  readonly notice: (notice: PersistenceNotice) => void
}

/** A log that was opened for a session before it became live. */
interface OpenedLog {
  readonly writer: LogWriter
  /** How many events of the session it holds. */
  readonly length: number
}

export interface TrackOptions {
  readonly opened?: OpenedLog | undefined
  /** Settles when the log of this id is free. */
  readonly after?: Promise<void> | undefined
}

/** Writes one live session's log. The session is the queue: what the log lacks is read from it. */
export class Track {
  readonly session: Session
  /** Set while the session's end is being stored. */
  retirement: Promise<void> | undefined
  readonly #host: TrackHost
  readonly #queue: WriteBehind
  #backing: ArtifactBacking
  #isMoved = false
  /** The log is known to be this session's. */
  #isOwner: boolean
  #writer: LogWriter | undefined
  #stored: number

  constructor(session: Session, host: TrackHost, { opened, after }: TrackOptions = {}) {
    this.session = session
    this.#host = host
    this.#writer = opened?.writer
    this.#stored = opened?.length ?? 0
    this.#isOwner = opened !== undefined
    this.#queue = new WriteBehind({
      hasMore: () => session.length > this.#stored,
      write: async () => {
        if (after !== undefined) await after.catch(() => undefined)
        await this.#run(() => this.#write())
      },
      delayMs: host.delayMs,
      timers: host.timers,
      onFailure: error => host.notice({ id: session.id, code: 'WRITE_FAILED', message: messageOf(error) }),
    })
    this.#backing = this.#attach()
    if (session.length > this.#stored) this.#queue.touch()
  }

  /** The session has grown. */
  touch(): void {
    this.#queue.touch()
  }

  /** Resolves once everything is durable. */
  async flush(): Promise<void> {
    if (!this.#isMoved) await this.#move()
    await this.#queue.flush()
  }

  /** Stores the rest and gives the log back. Where that fails the track stays as it is, and it may be tried again. */
  retire(): Promise<void> {
    this.retirement ??= this.#retire().finally(() => {
      this.retirement = undefined
    })
    return this.retirement
  }

  /** Gives the log back, whatever is not stored. */
  async close(): Promise<void> {
    this.#queue.stop()
    this.#backing.detach()
    await this.#run(async () => {
      await this.#writer?.close()
      this.#writer = undefined
    })
  }

  /** What an event names must be there before it. What could not be moved once is moved again. */
  async #move(): Promise<void> {
    await this.#backing.moved.catch(() => {
      this.#backing.detach()
      this.#backing = this.#attach()
      return this.#backing.moved
    })
    this.#isMoved = true
  }

  #attach(): ArtifactBacking {
    const backing = this.session.artifacts.attach({
      put: (bytes, type) => this.#run(() => this.#withWriter(writer => writer.putArtifact(bytes, type))),
      get: sha256 => this.#artifact(sha256),
    })
    // A failure is told of by the next flush.
    backing.moved.catch(() => undefined)
    return backing
  }

  async #retire(): Promise<void> {
    await this.flush()
    await this.close()
  }

  async #write(): Promise<void> {
    await this.#withWriter(async writer => {
      if (this.#stored === 0) await this.#inherit(writer)
      await this.#append(writer)
    })
  }

  /** The id may turn out to be stored with the first thing that is written; then this session must have begun it. */
  async #withWriter<T>(job: (writer: LogWriter) => Promise<T>): Promise<T> {
    this.#writer ??= this.#host.medium.begin(this.session.header)
    try {
      const result = await job(this.#writer)
      this.#isOwner = true
      return result
    } catch (error) {
      if (this.#isOwner || !isStored(error)) throw error
      return job(await this.#adopt(error))
    }
  }

  async #append(writer: LogWriter): Promise<void> {
    const events = [...this.session.since(this.#stored)]
    await writer.append(events)
    this.#stored += events.length
  }

  /** A fork keeps the pictures of its beginning itself: its parent may be gone one day. */
  async #inherit(writer: LogWriter): Promise<void> {
    const { artifacts, firstLiveSeq, header } = this.session
    if (header.parentSession === undefined || firstLiveSeq === 0) return
    for (const { sha256, mediaType } of picturesIn(this.session.since(0))) {
      const bytes = await artifacts.get(sha256)
      if (bytes !== undefined) await writer.putArtifact(bytes, mediaType)
    }
  }

  /** Goes on with a stored log that this very session began: its store was reloaded under it. */
  async #adopt(error: PersistenceError): Promise<LogWriter> {
    await this.#writer?.close()
    this.#writer = undefined
    const { log, writer } = await this.#host.medium.resume(this.session.id)
    try {
      if (!isPrefix(log, this.session)) throw error
      const notice = await writer.mend()
      if (notice !== undefined) this.#host.notice({ id: this.session.id, code: 'TAIL_CUT', message: notice })
    } catch (failure) {
      await writer.close()
      throw failure
    }
    this.#stored = log.events.length
    this.#writer = writer
    this.#isOwner = true
    return writer
  }

  async #artifact(sha256: string): Promise<Uint8Array | undefined> {
    return (await this.#writer?.getArtifact(sha256)) ?? this.#host.medium.artifact(this.session.id, sha256)
  }

  #run<T>(job: () => Promise<T>): Promise<T> {
    return this.#host.locks.run(this.session.id, job)
  }
}

function isStored(error: unknown): error is PersistenceError {
  return error instanceof PersistenceError && error.code === 'SESSION_EXISTS'
}

function isPrefix(log: StoredLog, session: Session): boolean {
  if (log.header.cwd !== session.header.cwd || log.events.length > session.length) return false
  return log.events.every((event: SessionEvent) => jsonEquals(event, session.at(event.seq)))
}

function picturesIn(events: Iterable<SessionEvent>): readonly ImageBlock['attachment'][] {
  const blocks = [...events].flatMap(event => deriveEventMessage(event)?.content ?? [])
  const inner = blocks.flatMap(block => (block.type === 'tool-result' ? block.content : [block]))
  return inner.flatMap(block => (block.type === 'image' ? [block.attachment] : []))
}
