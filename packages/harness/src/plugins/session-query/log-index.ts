import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { discardIndex, failed, identityOf, isDamage, openIndex } from './database.ts'
import type { IndexDatabase } from './database.ts'
import { IndexRows } from './index-rows.ts'
import { LiveDocuments } from './live-documents.ts'
import { aborted } from './sources.ts'

export interface OpenIndex {
  readonly db: DatabaseSync
  readonly rows: IndexRows
  readonly live: LiveDocuments
  readonly isWritable: boolean
  /** Why it is not the file that was asked for. */
  readonly problem: string | undefined
  /** Tells this opening from every other. */
  readonly nonce: string
}

export interface LogIndexOptions {
  readonly path: string
  /** The size that the documents are kept within. */
  readonly maxBytes: number
}

/** A file so much larger than what it may hold has no reason to be kept. */
const roomFactor = 4

/** The file behind the searches, opened when first asked for. One job has it at a time. */
export class LogIndex {
  readonly #options: LogIndexOptions
  #open: { readonly index: OpenIndex; readonly database: IndexDatabase } | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: LogIndexOptions) {
    this.#options = options
  }

  get maxBytes(): number {
    return this.#options.maxBytes
  }

  /**
   * Runs `job` with the index. Where the file is damaged it is made anew, and the job runs once more. A caller that
   * withdraws is let go once its job has ended.
   */
  run<T>(job: (index: OpenIndex) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const turn = this.#last.then(async () => {
      if (signal?.aborted === true) throw aborted(signal)
      return await this.#withCurrent(job).catch(async (error: unknown) => {
        if (!isDamage(error)) throw error
        await this.#rebuild()
        return await this.#withCurrent(job).catch((again: unknown) => {
          throw isDamage(again) ? failed(this.#options.path, again) : again
        })
      })
    })
    this.#last = turn.catch(() => undefined)
    return turn
  }

  /** Waits for the running job. */
  async close(): Promise<void> {
    await this.#last
    this.#close()
  }

  async #withCurrent<T>(job: (index: OpenIndex) => Promise<T>): Promise<T> {
    return await job(await this.#current())
  }

  /** The file may have been removed, or replaced by another program. */
  async #current(): Promise<OpenIndex> {
    const { path, maxBytes } = this.#options
    const identity = this.#open?.database.identity
    if (identity !== undefined && (await identityOf(path)) !== identity) this.#close()
    if (this.#open === undefined) {
      const database = await openIndex(path, maxBytes * roomFactor)
      const { db, isWritable, problem } = database
      try {
        const nonce = randomUUID()
        const rows = new IndexRows(db)
        this.#open = {
          database,
          index: { db, isWritable, problem, nonce, rows, live: new LiveDocuments(db) },
        }
      } catch (error) {
        db.close()
        throw error
      }
    }
    return this.#open.index
  }

  async #rebuild(): Promise<void> {
    this.#close()
    const { path } = this.#options
    await discardIndex(path).catch((error: unknown) => {
      throw failed(path, error)
    })
  }

  #close(): void {
    this.#open?.database.db.close()
    this.#open = undefined
  }
}
