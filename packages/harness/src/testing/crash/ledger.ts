import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type { LogWriter, Medium } from '../../plugins/persistence/index.ts'

/** What must be left of a session after a crash at one moment. */
export interface Expected {
  readonly header: SessionHeader
  /** Everything that was given to the medium; whatever is stored begins it. */
  readonly events: readonly SessionEvent[]
  /** How many of them somebody was told are durable. */
  readonly safe: number
  /** Bytes that somebody was told are durable, by their hash. */
  readonly artifacts: ReadonlyMap<string, Uint8Array>
  /** What the world outside has seen of the session by then. */
  readonly witnesses: readonly Witness[]
  /** Begun, the session is whole or gone; done, it is gone. */
  readonly removal: 'none' | 'begun' | 'done'
}

/** Says in one sentence what the log does not account for; undefined = nothing. */
export type Witness = (stored: readonly SessionEvent[]) => string | undefined

export type Expectations = ReadonlyMap<SessionId, Expected>

const nothing = { events: [], safe: 0, artifacts: new Map(), witnesses: [], removal: 'none' } as const

interface Note {
  readonly moment: number
  readonly id: SessionId
  readonly expected: Expected
}

/** Remembers what programs gave to their media and what they were told, and when. `now` counts moments. */
export class CrashLedger {
  readonly #now: () => number
  readonly #current: Map<SessionId, Expected>
  readonly #start: Expectations
  readonly #notes: Note[] = []

  constructor(now: () => number, start: Expectations = new Map()) {
    this.#now = now
    this.#start = new Map(start)
    this.#current = new Map(start)
  }

  get current(): Expectations {
    return this.#current
  }

  /** What was known at a moment, that moment included. */
  asOf(moment: number): Expectations {
    const expectations = new Map(this.#start)
    for (const note of this.#notes) {
      if (note.moment > moment) break
      expectations.set(note.id, note.expected)
    }
    return expectations
  }

  /**
   * Events are about to be stored; they take the place of those that had their seqs and were not. In the place of what
   * is safe nobody can put others.
   */
  offer(header: SessionHeader, all: readonly SessionEvent[]): void {
    const known = this.#known(header)
    const events = all.filter(({ seq }) => seq >= known.safe)
    const first = events[0]?.seq ?? known.events.length
    this.#note({ ...known, header, events: [...known.events.slice(0, first), ...events], removal: 'none' })
  }

  /** So many events are durable. */
  confirm(header: SessionHeader, length: number): void {
    this.#note({ ...this.#known(header), safe: length })
  }

  keep(header: SessionHeader, sha256: string, bytes: Uint8Array): void {
    const known = this.#known(header)
    this.#note({ ...known, artifacts: new Map(known.artifacts).set(sha256, bytes) })
  }

  /** Something happened outside that the log must account for. */
  witness(header: SessionHeader, witness: Witness): void {
    const known = this.#known(header)
    this.#note({ ...known, witnesses: [...known.witnesses, witness] })
  }

  remove(id: SessionId, removal: 'begun' | 'done'): void {
    const known = this.#current.get(id)
    if (known === undefined) return
    this.#note({ ...known, ...(removal === 'done' ? nothing : {}), removal })
  }

  #known(header: SessionHeader): Expected {
    return this.#current.get(header.id) ?? { header, ...nothing }
  }

  #note(expected: Expected): void {
    const { id } = expected.header
    this.#current.set(id, expected)
    this.#notes.push({ moment: this.#now(), id, expected })
  }
}

/** The same medium; what is given to it and what it promises stands in the ledger. */
export function watchMedium(medium: Medium, ledger: CrashLedger): Medium {
  const watched: Partial<Medium> = {
    begin: header => watchWriter(medium.begin(header), header, ledger),
    async resume(id, options) {
      const { log, writer } = await medium.resume(id, options)
      return { log, writer: watchWriter(writer, log.header, ledger) }
    },
    async remove(id, options) {
      ledger.remove(id, 'begun')
      const isRemoved = (await medium.remove?.(id, options)) ?? false
      ledger.remove(id, 'done')
      return isRemoved
    },
  }
  return new Proxy(medium, {
    get(target, key) {
      if (key === 'remove' && target.remove === undefined) return undefined
      const own: unknown = Reflect.get(watched, key)
      const value: unknown = own ?? Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function watchWriter(writer: LogWriter, header: SessionHeader, ledger: CrashLedger): LogWriter {
  return {
    mend: () => writer.mend(),
    async append(events) {
      if (events.length > 0) ledger.offer(header, events)
      await writer.append(events)
      const last = events.at(-1)
      if (last !== undefined) ledger.confirm(header, last.seq + 1)
    },
    async putArtifact(bytes, type) {
      const ref = await writer.putArtifact(bytes, type)
      ledger.keep(header, ref.sha256, Uint8Array.from(bytes))
      return ref
    },
    getArtifact: sha256 => writer.getArtifact(sha256),
    close: () => writer.close(),
  }
}
