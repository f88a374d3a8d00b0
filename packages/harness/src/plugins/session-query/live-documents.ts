import { setImmediate } from 'node:timers/promises'
import type { DatabaseSync } from 'node:sqlite'
import type { SessionId } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import { LogDigest } from './digest.ts'
import { DocumentTable } from './index-rows.ts'
import type { SessionSummary } from './service.ts'
import { aborted } from './sources.ts'

interface LiveLog {
  readonly session: Session
  readonly key: number
  readonly digest: LogDigest
  nextSeq: number
}

const stretchMs = 20

/** What live sessions hold, stored or not, up to the last time it was asked for. Seen by this program alone. */
export class LiveDocuments {
  readonly #table: DocumentTable
  readonly #logs = new Map<SessionId, LiveLog>()
  #nextKey = 1
  #generation = 0

  constructor(db: DatabaseSync) {
    this.#table = new DocumentTable(db, 'temp.live_documents', 'temp.live_words')
  }

  /** Rises with every change. */
  get generation(): number {
    return this.#generation
  }

  /** Takes in what was appended, and drops sessions that are no longer live. */
  async follow(sessions: readonly Session[], signal?: AbortSignal): Promise<void> {
    for (const [id, { session, key }] of this.#logs) {
      if (sessions.includes(session)) continue
      this.#logs.delete(id)
      this.#table.removeOf(key)
      this.#generation += 1
    }
    for (const session of sessions) await this.#read(this.#logOf(session), signal)
  }

  keyOf(id: SessionId): number | undefined {
    return this.#logs.get(id)?.key
  }

  lengthOf(id: SessionId): number {
    return this.#logs.get(id)?.nextSeq ?? 0
  }

  summaryOf(id: SessionId): SessionSummary | undefined {
    return this.#logs.get(id)?.digest.state.summary
  }

  #logOf(session: Session): LiveLog {
    const known = this.#logs.get(session.id)
    if (known !== undefined) return known
    const log = { session, key: this.#nextKey++, digest: new LogDigest(), nextSeq: 0 }
    this.#logs.set(session.id, log)
    return log
  }

  async #read(log: LiveLog, signal: AbortSignal | undefined): Promise<void> {
    let pauseAt = performance.now() + stretchMs
    for (const event of log.session.since(log.nextSeq)) {
      const { document, shadowed } = log.digest.next(event) ?? { shadowed: [] }
      if (document !== undefined) this.#table.add(log.key, document)
      this.#table.shadow(log.key, shadowed)
      log.nextSeq = event.seq + 1
      this.#generation += 1
      if (performance.now() < pauseAt) continue
      await setImmediate()
      if (signal?.aborted === true) throw aborted(signal)
      pauseAt = performance.now() + stretchMs
    }
  }
}
