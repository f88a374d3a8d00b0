import { createHash, randomUUID } from 'node:crypto'
import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type { SessionHolder } from '../core/session/index.ts'
import { adopt } from '../kernel/index.ts'
import { PersistenceError } from '../plugins/persistence/index.ts'
import type { LogWriter, Medium, StoredLog } from '../plugins/persistence/index.ts'

interface Entry {
  readonly header: SessionHeader
  readonly events: SessionEvent[]
  readonly artifacts: Map<string, Uint8Array>
  holder: SessionHolder | undefined
}

/** A place that keeps logs in memory, for tests of what is above a medium. */
export class MemoryStore {
  /** By which every holder is named. */
  readonly pid = 4711
  /** Why writes fail; undefined = they do not. */
  failure: Error | undefined
  /** How many writes succeeded. */
  writes = 0
  readonly #entries = new Map<SessionId, Entry>()

  /** Each opening is as if another program made it. */
  open(): Medium {
    return {
      name: 'memory',
      locate: ({ id }) => pathOf(id),
      read: async (id, { fromSeq = 0, signal } = {}) => {
        signal?.throwIfAborted()
        return this.#read(id, fromSeq)
      },
      revision: async id => this.#read(id, 0)?.revision,
      list: async signal => {
        signal?.throwIfAborted()
        const logs = [...this.#entries.keys()].flatMap(id => this.#read(id, 0) ?? [])
        return logs.map(({ header, path, revision }) => ({
          id: header.id,
          header,
          updatedAt: 0,
          path,
          revision,
        }))
      },
      begin: header => this.#writer(header),
      resume: async (id, { signal, takeFrom } = {}) => {
        const log = this.#read(id, 0)
        if (log === undefined)
          throw new PersistenceError('SESSION_NOT_FOUND', `session "${id}" is not stored`)
        signal?.throwIfAborted()
        const writer = this.#writer(log.header, this.#hold(log.header, takeFrom))
        return { log: { ...log, holder: undefined }, writer }
      },
      artifact: async (id, sha256) => this.#entries.get(id)?.artifacts.get(sha256),
      close: async () => {},
    }
  }

  /** What is durable of a log. */
  events(id: SessionId): readonly SessionEvent[] {
    return this.#entries.get(id)?.events ?? []
  }

  #read(id: SessionId, fromSeq: number): StoredLog | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.events.length === 0) return undefined
    const { header, events, holder } = entry
    const revision = String(events.length)
    return {
      header,
      toolStart: true,
      events: events.slice(fromSeq),
      gaps: [],
      revision,
      holder,
      path: pathOf(id),
    }
  }

  #hold(header: SessionHeader, takeFrom?: SessionHolder): SessionHolder {
    const entry = this.#entryOf(header)
    if (entry.holder !== undefined && entry.holder.nonce !== takeFrom?.nonce) throw heldBy(entry.holder)
    entry.holder = { pid: this.pid, since: Date.now(), host: 'memory', nonce: randomUUID() }
    return entry.holder
  }

  #entryOf(header: SessionHeader): Entry {
    const known = this.#entries.get(header.id)
    const entry = known ?? { header, events: [], artifacts: new Map(), holder: undefined }
    this.#entries.set(header.id, entry)
    return entry
  }

  #writer(header: SessionHeader, resumed?: SessionHolder): LogWriter {
    let own = resumed
    const open = (): Entry => {
      if (own === undefined) {
        if (this.#read(header.id, 0) !== undefined) throw isThere(header.id)
        own = this.#hold(header)
      }
      const entry = this.#entryOf(header)
      if (entry.holder !== own) throw entry.holder === undefined ? lost(header.id) : heldBy(entry.holder)
      return entry
    }
    return {
      mend: async () => undefined,
      append: async events => {
        if (events.length === 0) return
        // As with a disk, in a later job.
        await new Promise(resolve => setImmediate(resolve))
        if (this.failure !== undefined) throw this.failure
        const entry = open()
        const isNext = events.every(({ seq }, index) => seq === entry.events.length + index)
        if (!isNext) throw new PersistenceError('STALE_APPEND', 'the events do not continue the log')
        entry.events.push(...events.map(event => adopt(event)))
        this.writes += 1
      },
      putArtifact: async bytes => {
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        open().artifacts.set(sha256, Uint8Array.from(bytes))
        return { sha256, bytes: bytes.length }
      },
      getArtifact: async sha256 => this.#entries.get(header.id)?.artifacts.get(sha256),
      close: async () => {
        const entry = this.#entries.get(header.id)
        if (own !== undefined && entry?.holder === own) entry.holder = undefined
        own = undefined
      },
    }
  }
}

function pathOf(id: SessionId): string {
  return `memory:${id}`
}

function heldBy(holder: SessionHolder): PersistenceError {
  const since = new Date(holder.since).toISOString()
  return new PersistenceError('SESSION_HELD', `process ${holder.pid} has the session open since ${since}`, {
    holder,
  })
}

function isThere(id: SessionId): PersistenceError {
  return new PersistenceError('SESSION_EXISTS', `session "${id}" cannot be begun: it is there`)
}

function lost(id: SessionId): PersistenceError {
  return new PersistenceError('LOCK_LOST', `session "${id}" was closed`)
}
