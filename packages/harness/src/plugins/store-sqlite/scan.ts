import { setImmediate } from 'node:timers/promises'
import type { SessionEvent } from '@dsh/protocol'
import { PersistenceError, sqliteCode, sqliteCodes } from '../persistence/index.ts'
import type { StreamGap, StreamOptions } from '../persistence/index.ts'
import { decodeEvent, rootChain, sizeOf } from './codec.ts'
import type { EventRow, RowDamage } from './codec.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import type { StoredRow } from './sessions.ts'

type EventGapCode = RowDamage | 'ROW_MISSING' | 'ROW_UNCOUNTED' | 'PAGE_DAMAGED' | 'END_DAMAGED'

export interface EventGap extends StreamGap {
  readonly code: EventGapCode
}

export interface ScannedBatch {
  readonly gap?: EventGap
  readonly events: readonly SessionEvent[]
}

/** Rows are read in stretches of so many, or of so many bytes, and other work gets its turn in between. */
const rowsAtOnce = 512
const bytesAtOnce = 1024 * 1024

const someEvents = `SELECT seq, event, chain FROM events
  WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ${rowsAtOnce}`
const isThere = 'SELECT 1 AS found FROM sessions WHERE key = ?'
const chainAt = 'SELECT chain FROM events WHERE session = ? AND seq = ?'

/**
 * Reads the events of a log and never stops at damage: a batch with a gap says what was lost before it. What comes
 * before `fromSeq` is not looked at.
 */
export async function* scanEvents(
  database: Database,
  row: StoredRow,
  { fromSeq = 0, toSeq = Number.MAX_SAFE_INTEGER, signal }: StreamOptions = {},
): AsyncGenerator<ScannedBatch> {
  const stop = Math.min(Math.max(row.length, row.end), toSeq + 1)
  if (fromSeq >= stop) return
  const prevs = await prevsAt(database, row, fromSeq)
  const scan = new Scan(row, fromSeq, stop, prevs)
  while (!scan.isDone) {
    signal?.throwIfAborted()
    await database.read(connection => scan.step(connection))
    yield* scan.take()
    await setImmediate()
  }
}

async function prevsAt(database: Database, row: StoredRow, fromSeq: number): Promise<readonly string[]> {
  if (fromSeq === 0) return [rootChain(row.header)]
  const before = await database.read(connection => connection.get(chainAt, row.key, fromSeq - 1))
  return before === undefined ? [] : [String(before['chain'])]
}

class Scan {
  readonly #row: StoredRow
  readonly #stop: number
  #at: number
  #prevs: readonly string[]
  #batches: { readonly gap?: EventGap; readonly events: SessionEvent[] }[] = []
  /** Not given yet: it may grow. */
  #gap: EventGap | undefined

  constructor(row: StoredRow, fromSeq: number, stop: number, prevs: readonly string[]) {
    this.#row = row
    this.#stop = stop
    this.#at = fromSeq
    this.#prevs = prevs
  }

  get isDone(): boolean {
    return this.#at >= this.#stop && this.#gap === undefined
  }

  /** Gives what was read since the last call. */
  take(): readonly ScannedBatch[] {
    const batches = this.#batches
    this.#batches = []
    return batches
  }

  step(connection: Connection): void {
    if (this.#at < this.#stop) this.#read(connection)
    if (this.#at >= this.#stop) this.#finish()
  }

  #read(connection: Connection): void {
    const start = this.#at
    let bytes = 0
    try {
      for (const row of connection.iterate(someEvents, this.#row.key, start, this.#stop - 1)) {
        const body = row['event'] as string | Uint8Array
        this.#accept({ seq: Number(row['seq']), body, chain: String(row['chain']) })
        bytes += body.length
        if (bytes >= bytesAtOnce) return
      }
    } catch (error) {
      if (sqliteCode(error) !== sqliteCodes.corrupt) throw error
      // Seeking past the page goes on behind it; what was read before it stays.
      if (this.#at === start)
        this.#lose({ ...at(start), code: 'PAGE_DAMAGED', reason: 'a page of the database is damaged' })
      return
    }
    if (this.#at > start) return
    if (connection.get(isThere, this.#row.key) === undefined)
      throw new PersistenceError('SESSION_NOT_FOUND', 'the session was removed while it was read')
    this.#loseUpTo(this.#stop)
  }

  #accept(row: EventRow): void {
    if (row.seq > this.#at) this.#loseUpTo(row.seq)
    const decoded = decodeEvent(row, this.#prevs)
    if ('reason' in decoded) {
      this.#lose({ ...at(row.seq), bytes: sizeOf(row.body), code: decoded.code, reason: decoded.reason })
      this.#prevs = decoded.chains
      return
    }
    if (row.seq === this.#row.length)
      this.#lose({ ...before(row.seq), code: 'ROW_UNCOUNTED', reason: uncountedText })
    this.#put(decoded.event)
    this.#at = row.seq + 1
    this.#prevs = [decoded.chain]
  }

  #put(event: SessionEvent): void {
    if (this.#gap !== undefined || this.#batches.length === 0)
      this.#batches.push({ ...(this.#gap === undefined ? {} : { gap: this.#gap }), events: [] })
    this.#gap = undefined
    this.#batches.at(-1)?.events.push(event)
  }

  #loseUpTo(seq: number): void {
    const count = seq - this.#at
    const reason =
      count === 1 ? `event ${this.#at} is missing` : `events ${this.#at} to ${seq - 1} are missing`
    this.#lose({ fromSeq: this.#at, toSeq: seq - 1, bytes: 0, code: 'ROW_MISSING', reason })
    this.#prevs = []
  }

  /** Damage beside damage is one gap, and has the reason of its beginning. */
  #lose(next: EventGap): void {
    const { toSeq, bytes } = next
    this.#gap = this.#gap === undefined ? next : { ...this.#gap, toSeq, bytes: this.#gap.bytes + bytes }
    this.#at = Math.max(this.#at, toSeq + 1)
  }

  #finish(): void {
    const isWhole = this.#stop === this.#row.length && this.#gap === undefined && this.#prevs.length > 0
    if (isWhole && this.#prevs[0] !== this.#row.chain)
      this.#lose({ ...before(this.#stop), code: 'END_DAMAGED', reason: endText })
    if (this.#gap !== undefined) this.#batches.push({ gap: this.#gap, events: [] })
    this.#gap = undefined
  }
}

const uncountedText = 'the log has more events than its session counts'
const endText = 'the log does not end with the event that its session names'

function at(seq: number): Pick<EventGap, 'fromSeq' | 'toSeq' | 'bytes'> {
  return { fromSeq: seq, toSeq: seq, bytes: 0 }
}

/** Nothing is lost there. */
function before(seq: number): Pick<EventGap, 'fromSeq' | 'toSeq' | 'bytes'> {
  return { fromSeq: seq, toSeq: seq - 1, bytes: 0 }
}
