import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import type { SessionHolder } from '../../core/session/index.ts'
import { assertNext, notStored, PersistenceError, toHeaderText } from '../persistence/index.ts'
import type { LogWriter } from '../persistence/index.ts'
import { getArtifact, putArtifact, sha256Of } from './artifacts.ts'
import { encodeEvent, rootChain, sizeOf } from './codec.ts'
import type { EventRow } from './codec.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import { storeError } from './failure.ts'
import { assertFree, livingHolder, newHolder } from './holder.ts'
import type { StoreHost } from './holder.ts'
import { findById, findByKey, toKeyText } from './sessions.ts'
import type { StoredRow } from './sessions.ts'

const begin = `INSERT INTO sessions (id, header, length, chain, bytes, updated_at, holder)
  VALUES (?, ?, 0, ?, 0, ?, ?)
  RETURNING key`
const beginAgain = 'UPDATE sessions SET header = ?, chain = ?, updated_at = ?, holder = ? WHERE key = ?'
const insertEvent = 'INSERT INTO events (session, seq, event, chain) VALUES (?, ?, ?, ?)'
const count = 'UPDATE sessions SET length = ?, chain = ?, bytes = bytes + ?, updated_at = ? WHERE key = ?'
const hold = 'UPDATE sessions SET holder = ? WHERE key = ?'
const letGo = 'UPDATE sessions SET holder = NULL WHERE key = ? AND holder = ?'

export interface WriterHost extends StoreHost {
  readonly database: Database
}

/** Where a log ends. */
type End = Pick<StoredRow, 'length' | 'chain'>

/** Writes one log, alone. Starts without a right to it; `hold` or the first write takes that. */
export class SqliteWriter implements LogWriter {
  readonly #host: WriterHost
  readonly #header: SessionHeader
  /** Names this writer in the row of its session. */
  readonly #holder: string
  #key: number | undefined
  #end: End

  constructor(host: WriterHost, header: SessionHeader) {
    this.#host = host
    this.#header = header
    this.#holder = newHolder(host)
    this.#end = { length: 0, chain: rootChain(toHeaderText(header)) }
  }

  /** Takes the right to continue the stored log and gives its row. Rejects with SESSION_HELD. */
  hold(takeFrom?: SessionHolder): Promise<StoredRow> {
    return this.#run('continued', async () => {
      const row = await this.#host.database.write(connection => {
        const found = this.#find(connection)
        assertFree(found.holder, this.#host, takeFrom)
        connection.run(hold, this.#holder, found.key)
        return found
      })
      this.#key = row.key
      this.#end = row
      return row
    })
  }

  /** A transaction is whole or not there, so that no crash leaves a loose end. */
  mend(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  async append(events: readonly SessionEvent[]): Promise<void> {
    if (events.length === 0) return
    assertNext(events, this.#end.length)
    const rows = this.#encode(events)
    const bytes = rows.reduce((sum, { body }) => sum + sizeOf(body), 0)
    const end = { length: this.#end.length + rows.length, chain: rows.at(-1)?.chain ?? '' }
    await this.#run('stored', async () => {
      this.#key = await this.#host.database.write(connection => {
        const key = this.#claim(connection)
        for (const { seq, body, chain } of rows) connection.run(insertEvent, key, seq, body, chain)
        connection.run(count, end.length, end.chain, bytes, this.#host.now(), key)
        return key
      })
    })
    this.#end = end
  }

  async putArtifact(bytes: Uint8Array): Promise<{ readonly sha256: string; readonly bytes: number }> {
    const sha256 = sha256Of(bytes)
    await this.#run('stored', async () => {
      this.#key = await this.#host.database.write(connection => {
        const key = this.#claim(connection)
        putArtifact(connection, key, sha256, bytes)
        return key
      })
    })
    return { sha256, bytes: bytes.length }
  }

  async getArtifact(sha256: string): Promise<Uint8Array | undefined> {
    const key = this.#key
    if (key === undefined) return undefined
    return this.#run('read', () =>
      this.#host.database.read(connection => getArtifact(connection, key, sha256)),
    )
  }

  /** Where it rejects, it may be called again. */
  async close(): Promise<void> {
    const key = this.#key
    if (key === undefined) return
    await this.#run('closed', () =>
      this.#host.database.write(connection => connection.run(letGo, key, this.#holder)),
    )
  }

  async reopen(): Promise<boolean> {
    const key = this.#key
    if (key === undefined) return false
    return this.#run('continued', () =>
      this.#host.database.write(connection => {
        const row = findByKey(connection, key)
        if (row === undefined || livingHolder(row.holder, this.#host) !== undefined) return false
        if (!isSame(row, this.#end)) return false
        connection.run(hold, this.#holder, key)
        return true
      }),
    )
  }

  #encode(events: readonly SessionEvent[]): readonly EventRow[] {
    let prev = this.#end.chain
    return events.map(event => {
      const row = encodeEvent(event, prev)
      prev = row.chain
      return row
    })
  }

  #find(connection: Connection): StoredRow {
    const { id } = this.#header
    const row = findById(connection, id)
    if (row !== undefined && row.length > 0) return row
    throw notStored(id)
  }

  /** The key of the log, which is ours and as we left it; throws where it is not. */
  #claim(connection: Connection): number {
    const key = this.#key
    if (key === undefined) return this.#begin(connection)
    const { id } = this.#header
    const row = findByKey(connection, key)
    if (row === undefined)
      throw new PersistenceError(
        'STALE_APPEND',
        `session "${id}" was removed or repaired by another program, so nothing more is written to it`,
      )
    if (row.holder !== this.#holder) {
      assertFree(row.holder, this.#host)
      connection.run(hold, this.#holder, key)
    }
    if (isSame(row, this.#end)) return key
    throw new PersistenceError(
      'STALE_APPEND',
      `another program changed the log of session "${id}" (${row.length} events where ${this.#end.length} were left), so nothing more is written to it`,
    )
  }

  #begin(connection: Connection): number {
    const { id } = this.#header
    const header = toHeaderText(this.#header)
    const now = this.#host.now()
    const row = findById(connection, id)
    if (row === undefined)
      return Number(connection.get(begin, toKeyText(id), header, this.#end.chain, now, this.#holder)?.['key'])
    if (row.length > 0 || row.end > 0)
      throw new PersistenceError('SESSION_EXISTS', `session "${id}" cannot be begun: it is stored already`)
    assertFree(row.holder, this.#host)
    connection.run(beginAgain, header, this.#end.chain, now, this.#holder, row.key)
    return row.key
  }

  async #run<T>(verb: string, job: () => Promise<T>): Promise<T> {
    try {
      return await job()
    } catch (error) {
      throw storeError(error, `session "${this.#header.id}" cannot be ${verb}`, this.#host.database.path)
    }
  }
}

function isSame(row: End, end: End): boolean {
  return row.length === end.length && row.chain === end.chain
}
