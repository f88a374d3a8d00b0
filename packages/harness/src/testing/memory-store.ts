import { createHash, randomUUID } from 'node:crypto'
import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type {
  MediumReport,
  RawLog,
  RepairResult,
  SessionHolder,
  StoredBatch,
  StreamOptions,
} from '../core/session/index.ts'
import { adopt } from '../kernel/index.ts'
import { heldBy, notStored, PersistenceError } from '../plugins/persistence/index.ts'
import type { LogWriter, Medium, StoredLog } from '../plugins/persistence/index.ts'

interface Entry {
  readonly header: SessionHeader
  /** Another for each log that was ever there. */
  readonly incarnation: number
  readonly artifacts: Map<string, Uint8Array>
  readonly lost: Set<number>
  events: readonly SessionEvent[]
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
  /** How many logs were read from their beginning. */
  reads = 0
  readonly #entries = new Map<SessionId, Entry>()
  readonly #watchers = new Map<SessionId, Set<() => void>>()
  #incarnations = 0

  /** Each opening is as if another program made it. */
  open(): Medium {
    return {
      name: 'memory',
      locate: ({ id }) => pathOf(id),
      read: async (id, { fromSeq = 0, signal } = {}) => {
        signal?.throwIfAborted()
        return this.#read(id, fromSeq)
      },
      stream: (id, options) => this.#stream(id, options),
      revision: async id => revisionOf(this.#stored(id)),
      list: async signal => {
        signal?.throwIfAborted()
        const entries = [...this.#entries.values()].filter(isStored)
        return entries.map(entry => ({
          id: entry.header.id,
          header: entry.header,
          updatedAt: 0,
          path: pathOf(entry.header.id),
          revision: revisionOf(entry) ?? '',
        }))
      },
      begin: header => this.#writer(header),
      resume: async (id, { signal, takeFrom } = {}) => {
        const log = this.#read(id, 0)
        if (log === undefined) throw notStored(id)
        signal?.throwIfAborted()
        if (log.gaps.length > 0) throw damaged(id)
        const writer = this.#writer(log.header, this.#hold(log.header, takeFrom))
        return { log: { ...log, holder: undefined }, writer }
      },
      artifact: async (id, sha256) => this.#entries.get(id)?.artifacts.get(sha256),
      holder: async id => this.#entries.get(id)?.holder,
      readRaw: async id => this.#readRaw(id),
      remove: async (id, { signal } = {}) => {
        signal?.throwIfAborted()
        return this.#remove(id)
      },
      watch: (id, onChange) => this.#watch(id, onChange),
      verify: async id => this.#verify(id),
      repair: async id => this.#repair(id),
      close: async () => {},
    }
  }

  /** What is durable of a log. */
  events(id: SessionId): readonly SessionEvent[] {
    return this.#entries.get(id)?.events ?? []
  }

  /** Makes a stored event unreadable. */
  damage(id: SessionId, seq: number): void {
    this.#stored(id)?.lost.add(seq)
  }

  #stored(id: SessionId): Entry | undefined {
    const entry = this.#entries.get(id)
    return entry !== undefined && isStored(entry) ? entry : undefined
  }

  #read(id: SessionId, fromSeq: number): StoredLog | undefined {
    const entry = this.#stored(id)
    if (entry === undefined) return undefined
    if (fromSeq === 0) this.reads += 1
    const { header, holder } = entry
    const [{ events }, ...behind] = stretches(entry)
    return {
      header,
      toolStart: true,
      events: events.slice(fromSeq),
      gaps: behind.flatMap(({ gap, events: rest }) => (gap === undefined ? [] : [{ ...gap, events: rest }])),
      revision: revisionOf(entry) ?? '',
      holder,
      path: pathOf(id),
    }
  }

  async *#stream(
    id: SessionId,
    { fromSeq = 0, toSeq = Infinity, signal }: StreamOptions = {},
  ): AsyncGenerator<StoredBatch> {
    const entry = this.#stored(id)
    if (entry === undefined) throw notStored(id)
    for (const { gap, events } of stretches(entry)) {
      const shown = events.filter(({ seq }) => seq >= fromSeq && seq <= toSeq)
      const isLostHere = gap !== undefined && gap.toSeq >= fromSeq && gap.fromSeq <= toSeq
      if (isLostHere) yield { gap, events: [] }
      for (let at = 0; at < shown.length; at += eventsAtOnce) {
        signal?.throwIfAborted()
        yield { events: shown.slice(at, at + eventsAtOnce) }
      }
    }
  }

  #readRaw(id: SessionId): RawLog | undefined {
    const entry = this.#stored(id)
    if (entry === undefined) return undefined
    const lines = [entry.header, ...entry.events].map(line => `${JSON.stringify(line)}\n`)
    return { header: entry.header, filename: 'log.jsonl', content: Buffer.from(lines.join('')) }
  }

  #remove(id: SessionId): boolean {
    const entry = this.#stored(id)
    if (entry === undefined) return false
    if (entry.holder !== undefined) throw heldBy(entry.holder)
    this.#entries.delete(id)
    this.#tell(id)
    return true
  }

  #verify(id: SessionId): MediumReport {
    const entry = this.#stored(id)
    if (entry === undefined) throw notStored(id)
    const { header, events, lost } = entry
    const problems = [...lost].map(seq => ({ code: 'EVENT_LOST', message: lostText(seq), seq }))
    const bytes = JSON.stringify(events).length
    return { header, frames: 0, events: events.length - lost.size, bytes, problems }
  }

  #repair(id: SessionId): RepairResult {
    const entry = this.#stored(id)
    if (entry === undefined) throw notStored(id)
    if (entry.holder !== undefined) throw heldBy(entry.holder)
    const [{ events }, ...behind] = stretches(entry)
    if (behind.length === 0) return { events: events.length, branches: [] }
    if (events.length === 0) throw damaged(id)
    this.#incarnations += 1
    const { header, artifacts } = entry
    const incarnation = this.#incarnations
    this.#entries.set(id, { header, artifacts, incarnation, events, lost: new Set(), holder: undefined })
    this.#tell(id)
    return { kept: `${pathOf(id)}:${entry.incarnation}`, events: events.length, branches: [] }
  }

  #watch(id: SessionId, onChange: () => void): () => void {
    const watchers = this.#watchers.get(id) ?? new Set()
    this.#watchers.set(id, watchers.add(onChange))
    return () => void watchers.delete(onChange)
  }

  #tell(id: SessionId): void {
    for (const onChange of this.#watchers.get(id) ?? []) onChange()
  }

  #hold(header: SessionHeader, takeFrom?: SessionHolder): SessionHolder {
    const entry = this.#entryOf(header)
    if (entry.holder !== undefined && entry.holder.nonce !== takeFrom?.nonce) throw heldBy(entry.holder)
    entry.holder = { pid: this.pid, since: Date.now(), host: 'memory', nonce: randomUUID() }
    return entry.holder
  }

  #entryOf(header: SessionHeader): Entry {
    const known = this.#entries.get(header.id)
    if (known !== undefined) return known
    this.#incarnations += 1
    const incarnation = this.#incarnations
    const empty = { artifacts: new Map(), lost: new Set<number>(), events: [], holder: undefined }
    const entry = { header, incarnation, ...empty }
    this.#entries.set(header.id, entry)
    return entry
  }

  #writer(header: SessionHeader, resumed?: SessionHolder): LogWriter {
    let own = resumed
    let closedAt: string | undefined
    const open = (): Entry => {
      if (own === undefined) {
        if (this.#stored(header.id) !== undefined) throw isThere(header.id)
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
        entry.events = [...entry.events, ...events.map(event => adopt(event))]
        this.writes += 1
        this.#tell(header.id)
      },
      putArtifact: async bytes => {
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        open().artifacts.set(sha256, Uint8Array.from(bytes))
        return { sha256, bytes: bytes.length }
      },
      getArtifact: async sha256 => this.#entries.get(header.id)?.artifacts.get(sha256),
      close: async () => {
        const entry = this.#entries.get(header.id)
        closedAt = own === undefined ? undefined : revisionOf(this.#stored(header.id))
        if (own !== undefined && entry?.holder === own) entry.holder = undefined
        own = undefined
        this.#tell(header.id)
      },
      reopen: async () => {
        const entry = this.#stored(header.id)
        if (entry?.holder !== undefined || closedAt === undefined) return false
        if (revisionOf(entry) !== closedAt) return false
        own = this.#hold(header)
        return true
      },
    }
  }
}

const eventsAtOnce = 100

function isStored({ events }: Entry): boolean {
  return events.length > 0
}

function revisionOf(entry: Entry | undefined): string | undefined {
  return entry && `${entry.incarnation}:${entry.events.length}:${entry.lost.size}`
}

/** The readable parts in order; the first has no gap before it, and may be empty. */
function stretches({ events, lost: gone }: Entry): [StoredBatch, ...StoredBatch[]] {
  const first = events.findIndex(({ seq }) => gone.has(seq))
  if (first < 0) return [{ events }]
  const parts: [StoredBatch, ...StoredBatch[]] = [{ events: events.slice(0, first) }]
  for (let at = first; at < events.length;) {
    let end = at
    while (gone.has(end)) end += 1
    const next = events.findIndex(({ seq }) => seq >= end && gone.has(seq))
    const gap = { fromSeq: at, toSeq: end - 1, bytes: 0, reason: lostText(at) }
    parts.push({ gap, events: events.slice(end, next < 0 ? undefined : next) })
    at = next < 0 ? events.length : next
  }
  return parts
}

function lostText(seq: number): string {
  return `event ${seq} is lost`
}

function damaged(id: SessionId): PersistenceError {
  return new PersistenceError('SESSION_DAMAGED', `the log of session "${id}" is damaged`)
}

function pathOf(id: SessionId): string {
  return `memory:${id}`
}

function isThere(id: SessionId): PersistenceError {
  return new PersistenceError('SESSION_EXISTS', `session "${id}" cannot be begun: it is there`)
}

function lost(id: SessionId): PersistenceError {
  return new PersistenceError('LOCK_LOST', `session "${id}" was closed`)
}
