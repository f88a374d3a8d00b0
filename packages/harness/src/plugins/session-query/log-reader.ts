import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { SessionEvent } from '@dsh/protocol'
import { beginWriting } from './database.ts'
import { emptyDigest, LogDigest } from './digest.ts'
import type { IndexedLog } from './index-rows.ts'
import type { OpenIndex } from './log-index.ts'
import { aborted } from './sources.ts'
import type { MarkedRecord, Sources } from './sources.ts'

/**
 * 'done': the index holds the log. 'partial': it holds the beginning, and goes on there next time. 'busy': another
 * program writes the index.
 */
export type ReadOutcome = 'done' | 'partial' | 'busy'

export interface ReadOptions {
  /** Reading may stop once there is a first prompt to show. */
  readonly until: 'first-prompt' | 'end'
  /** Ends early at this time, of `performance.now()`. */
  readonly deadline?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** How long to wait for others who write. */
  readonly patienceMs: number
}

/** A first prompt stands among so many events, or is waited for until the log is read. */
const headEvents = 64
/** Other work gets its turn after so long, and others who write after so long. */
const stretchMs = 20
const holdMs = 500

interface Reading {
  log: IndexedLog
  digest: LogDigest
  last: SessionEvent | undefined
  nextSeq: number
  /** The log is known to be the one that was read before. */
  isSame: boolean
}

/**
 * Reads what the index lacks of one log. Whatever was read is kept, wherever it ends: a log is never read twice, unless
 * it is no longer the one that was read.
 */
export async function readLog(
  index: OpenIndex,
  sources: Sources,
  marked: MarkedRecord,
  options: ReadOptions,
): Promise<ReadOutcome> {
  if (!(await beginWriting(index.db, options.patienceMs))) return 'busy'
  try {
    const outcome = await new LogReader(index, sources, marked, options).read()
    if (index.db.isTransaction) index.db.exec('COMMIT')
    return outcome
  } catch (error) {
    if (index.db.isTransaction) index.db.exec('ROLLBACK')
    throw error
  }
}

class LogReader {
  readonly #index: OpenIndex
  readonly #sources: Sources
  readonly #marked: MarkedRecord
  readonly #options: ReadOptions
  #pauseAt = performance.now() + stretchMs
  #yieldAt = performance.now() + holdMs

  constructor(index: OpenIndex, sources: Sources, marked: MarkedRecord, options: ReadOptions) {
    this.#index = index
    this.#sources = sources
    this.#marked = marked
    this.#options = options
  }

  async read(): Promise<ReadOutcome> {
    const { record, revision } = this.#marked
    const known = this.#index.rows.get(record.id)
    // Another program may have been here while we waited.
    if (known !== undefined && known.revision === revision && known.revision !== '') return 'done'
    if (known !== undefined && isContinued(known, record.header)) {
      const outcome = await this.#readFrom(known)
      if (outcome !== undefined) return outcome
    }
    const begun = this.#index.rows.begin(record.id, record.header, emptyDigest)
    return (await this.#readFrom(begun)) ?? 'partial'
  }

  /** Undefined where the log is not the one that was read, or must be read as a whole. */
  async #readFrom(log: IndexedLog): Promise<ReadOutcome | undefined> {
    const { id } = log
    const { until, signal } = this.#options
    const isFromStart = log.nextSeq === 0
    const reading: Reading = {
      log,
      digest: new LogDigest(log.digest, isFromStart),
      last: undefined,
      nextSeq: log.nextSeq,
      isSame: isFromStart,
    }
    const toSeq = until === 'first-prompt' ? headEvents - 1 : undefined
    const batches = this.#sources.stream(id, { fromSeq: Math.max(0, log.nextSeq - 1), toSeq, signal })
    for await (const { gap, events } of batches) {
      if (gap !== undefined) {
        if (!reading.isSame) return undefined
        return this.#end(reading, `damaged from event ${gap.fromSeq}: ${gap.reason}`)
      }
      const outcome = await this.#takeAll(reading, events)
      if (outcome !== 'read') return outcome
    }
    if (!reading.isSame) return undefined
    if (toSeq === undefined || reading.nextSeq <= toSeq) return this.#end(reading, undefined)
    this.#save(reading, '')
    return 'partial'
  }

  /** 'read': and the log goes on. */
  async #takeAll(
    reading: Reading,
    events: readonly SessionEvent[],
  ): Promise<ReadOutcome | 'read' | undefined> {
    for (const event of events) {
      if (!reading.isSame) {
        reading.isSame = tailOf(event) === reading.log.tail
        if (reading.isSame) continue
        return undefined
      }
      if (!this.#take(reading, event)) return undefined
      const stop = await this.#pause(reading)
      if (stop !== undefined) return stop
    }
    return 'read'
  }

  #take(reading: Reading, event: SessionEvent): boolean {
    const { documents } = this.#index.rows
    const digested = reading.digest.next(event)
    if (digested === undefined) return false
    const { document, shadowed } = digested
    const { key, hasDocuments } = reading.log
    if (document !== undefined && hasDocuments) documents.add(key, document)
    documents.shadow(key, shadowed)
    reading.last = event
    reading.nextSeq = event.seq + 1
    return true
  }

  /** Where the reading is to stop here, with what is kept. */
  async #pause(reading: Reading): Promise<ReadOutcome | undefined> {
    const { until, deadline, signal } = this.#options
    if (until === 'first-prompt' && reading.digest.state.summary.firstPrompt !== undefined) {
      this.#save(reading, '')
      return 'partial'
    }
    if (performance.now() < this.#pauseAt) return undefined
    if (deadline !== undefined && performance.now() >= deadline) {
      this.#save(reading, '')
      return 'partial'
    }
    await setImmediate()
    if (signal?.aborted === true) throw aborted(signal)
    if (performance.now() >= this.#yieldAt && !(await this.#letOthersWrite(reading))) return 'busy'
    this.#pauseAt = performance.now() + stretchMs
    return undefined
  }

  /** False where another program went on with this log meanwhile. */
  async #letOthersWrite(reading: Reading): Promise<boolean> {
    const { db, rows } = this.#index
    this.#save(reading, '')
    const generation = rows.get(reading.log.id)?.generation
    db.exec('COMMIT')
    await setImmediate()
    if (!(await beginWriting(db, this.#options.patienceMs))) return false
    this.#yieldAt = performance.now() + holdMs
    return rows.get(reading.log.id)?.generation === generation
  }

  #end(reading: Reading, gap: string | undefined): ReadOutcome {
    this.#save(reading, this.#marked.revision ?? '', gap)
    return 'done'
  }

  #save({ log, digest, last, nextSeq }: Reading, revision: string, gap?: string): void {
    const tail = last === undefined ? log.tail : tailOf(last)
    this.#index.rows.save(log.key, { revision, nextSeq, tail, digest: digest.state, gap })
  }
}

/** What comes behind a gap is no part of the log, so that a repaired one is read anew. */
function isContinued(known: IndexedLog, header: object): boolean {
  return known.nextSeq > 0 && known.gap === undefined && known.header === JSON.stringify(header)
}

function tailOf(event: SessionEvent): string {
  return createHash('sha256').update(JSON.stringify(event)).digest('base64url')
}
