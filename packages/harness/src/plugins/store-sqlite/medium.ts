import { sessionFormatVersion } from '@dsh/protocol'
import type { SessionHeader, SessionId } from '@dsh/protocol'
import type { SessionHolder, SessionRow } from '../../core/session/index.ts'
import {
  damagedLog,
  gather,
  newerFormatText,
  notStored,
  parseHeaderLine,
  PersistenceError,
  toStreamGap,
} from '../persistence/index.ts'
import type {
  HeaderLine,
  LogWriter,
  Medium,
  MediumReport,
  ReadOptions,
  RepairResult,
  ResumeOptions,
  StoredBatch,
  StoredLog,
  StreamOptions,
} from '../persistence/index.ts'
import { getArtifact } from './artifacts.ts'
import type { Database } from './database.ts'
import { storeError } from './failure.ts'
import { livingHolder } from './holder.ts'
import type { StoreHost } from './holder.ts'
import { listRows } from './list.ts'
import { removeSession, sweepSessions } from './remove.ts'
import { repairLog } from './repair.ts'
import { scanEvents } from './scan.ts'
import { findById, revisionOf } from './sessions.ts'
import type { StoredRow } from './sessions.ts'
import { verifyLog } from './verify.ts'
import { watchDatabase } from './watch.ts'
import { SqliteWriter } from './writer.ts'

/** A log that was found, and what its row says. */
interface Found extends HeaderLine {
  readonly row: StoredRow
}

/** Logs as rows of one SQLite database. */
export class SqliteMedium implements Medium {
  readonly name = 'store-sqlite'
  readonly #database: Database
  readonly #host: StoreHost

  constructor(database: Database, host: StoreHost) {
    this.#database = database
    this.#host = host
  }

  locate(): string {
    return this.#database.path
  }

  read(id: SessionId, options: ReadOptions = {}): Promise<StoredLog | undefined> {
    return this.#run(id, 'read', async () => {
      const found = await this.#find(id, options.signal)
      return found && this.#log(found, options)
    })
  }

  revision(id: SessionId): Promise<string | undefined> {
    return this.#run(id, 'read', async () => {
      const row = await this.#row(id)
      return row && revisionOf(row)
    })
  }

  async list(signal?: AbortSignal): Promise<readonly SessionRow[]> {
    try {
      return await listRows(this.#database, this.#host, signal)
    } catch (error) {
      throw storeError(error, 'the sessions cannot be listed', this.#database.path)
    }
  }

  begin(header: SessionHeader): LogWriter {
    return new SqliteWriter({ ...this.#host, database: this.#database }, header)
  }

  resume(id: SessionId, options: ResumeOptions = {}): Promise<{ log: StoredLog; writer: LogWriter }> {
    return this.#run(id, 'continued', async () => {
      const found = await this.#find(id, options.signal)
      if (found === undefined) throw notStored(id)
      const { header } = found
      if (header.version > sessionFormatVersion)
        throw new PersistenceError(
          'SESSION_FORMAT_NEWER',
          newerFormatText(header.version, this.#database.path),
        )
      const writer = new SqliteWriter({ ...this.#host, database: this.#database }, header)
      const row = await writer.hold(options.takeFrom)
      try {
        const log = await this.#log({ ...found, row }, options)
        const [gap] = log.gaps
        if (gap !== undefined) throw this.#damaged(id, gap.reason)
        return { log: { ...log, holder: undefined }, writer }
      } catch (error) {
        await writer.close()
        throw error
      }
    })
  }

  artifact(id: SessionId, sha256: string): Promise<Uint8Array | undefined> {
    return this.#run(id, 'read', () =>
      this.#database.read(connection => {
        const row = findById(connection, id)
        return row && getArtifact(connection, row.key, sha256)
      }),
    )
  }

  async *stream(id: SessionId, options: StreamOptions = {}): AsyncGenerator<StoredBatch> {
    try {
      const found = await this.#find(id, options.signal)
      if (found === undefined) throw notStored(id)
      for await (const { gap, events } of scanEvents(this.#database, found.row, options))
        yield gap === undefined ? { events } : { gap: toStreamGap(gap), events }
    } catch (error) {
      throw storeError(error, `session "${id}" cannot be read`, this.#database.path)
    }
  }

  remove(id: SessionId, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<boolean> {
    return this.#run(id, 'removed', () => {
      signal?.throwIfAborted()
      return removeSession(this.#database, id, this.#host)
    })
  }

  async holder(id: SessionId): Promise<SessionHolder | undefined> {
    const row = await this.#run(id, 'read', () => this.#row(id))
    return livingHolder(row?.holder, this.#host)
  }

  watch(_id: SessionId, onChange: () => void): () => void {
    return watchDatabase(this.#database.path, onChange)
  }

  verify(id: SessionId, signal?: AbortSignal): Promise<MediumReport> {
    return this.#run(id, 'checked', async () => {
      const row = await this.#row(id)
      if (row === undefined) throw notStored(id)
      return verifyLog(this.#database, id, row, signal)
    })
  }

  repair(id: SessionId): Promise<RepairResult> {
    return this.#run(id, 'repaired', async () => {
      const found = await this.#find(id)
      if (found === undefined) throw notStored(id)
      const writer = new SqliteWriter({ ...this.#host, database: this.#database }, found.header)
      const row = await writer.hold()
      try {
        return await repairLog(this.#database, row, this.#host)
      } finally {
        await writer.close()
      }
    })
  }

  sweep(): Promise<void> {
    return sweepSessions(this.#database, this.#host)
  }

  async close(): Promise<void> {
    try {
      this.#database.close()
    } catch (error) {
      throw storeError(error, 'the database cannot be closed', this.#database.path)
    }
  }

  /** A row without events is no log. */
  async #row(id: SessionId): Promise<StoredRow | undefined> {
    const row = await this.#database.read(connection => findById(connection, id))
    return row !== undefined && (row.length > 0 || row.end > 0) ? row : undefined
  }

  async #find(id: SessionId, signal?: AbortSignal): Promise<Found | undefined> {
    signal?.throwIfAborted()
    const row = await this.#row(id)
    if (row === undefined) return undefined
    const line = parseHeaderLine(row.header)
    if (typeof line === 'string') throw this.#damaged(id, line)
    if (line.header.id !== id) throw this.#damaged(id, `its header is that of session "${line.header.id}"`)
    return { ...line, row }
  }

  async #log({ header, toolStart, row }: Found, { fromSeq, signal }: ReadOptions): Promise<StoredLog> {
    return {
      header,
      toolStart,
      ...(await gather(scanEvents(this.#database, row, { fromSeq, signal }))),
      revision: revisionOf(row),
      holder: livingHolder(row.holder, this.#host),
      path: this.#database.path,
    }
  }

  async #run<T>(id: SessionId, verb: string, job: () => Promise<T>): Promise<T> {
    try {
      return await job()
    } catch (error) {
      throw storeError(error, `session "${id}" cannot be ${verb}`, this.#database.path)
    }
  }

  #damaged(id: SessionId, reason: string): PersistenceError {
    return damagedLog(id, reason, this.#database.path)
  }
}
