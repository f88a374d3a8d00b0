import { statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { setTimeout } from 'node:timers/promises'
import type { DatabaseSyncOptions } from 'node:sqlite'
import { loadSqlite, PersistenceError, sqliteCode, sqliteCodes } from '../persistence/index.ts'
import { Connection } from './connection.ts'
import { checkPlace, identityOf, memoryPath, preparePlace } from './place.ts'
import { checkSchema, createSchema, isPristine } from './schema.ts'

export type JournalMode = 'wal' | 'delete' | 'truncate' | 'persist'

export interface DatabaseOptions {
  readonly path: string
  readonly journalMode: JournalMode
  /** How long another program's transaction is waited for, in ms. */
  readonly busyTimeoutMs: number
}

interface Opened {
  readonly connection: Connection
  readonly identity: string | undefined
  readonly mayWrite: boolean
  schema: unknown
}

/** Between two looks at whether another program is done. */
const retryMs = 10

const safeOptions: DatabaseSyncOptions = {
  enableForeignKeyConstraints: true,
  enableDoubleQuotedStringLiterals: false,
  allowExtension: false,
  // The waiting is done here, so that it stops nothing else.
  timeout: 0,
}

/**
 * The file of all sessions, opened when it is first used, and for writing when something is first written.
 *
 * SQLite works synchronously: a transaction holds the program up for as long as its sync takes. What waits for other
 * programs does not.
 */
export class Database {
  readonly path: string
  readonly #options: DatabaseOptions
  #opened: Opened | undefined
  #isClosed = false

  constructor(options: DatabaseOptions) {
    this.path = options.path
    this.#options = options
  }

  /** Undefined where there is no database yet. Writes nothing. */
  async read<T>(job: (connection: Connection) => T): Promise<T | undefined> {
    return this.#retry(() => {
      const opened = this.#current() ?? this.#openToRead()
      return opened && job(opened.connection)
    })
  }

  /**
   * Runs `job` in one transaction, which is durable when the promise resolves; where it rejects, nothing was changed.
   * It may run several times.
   */
  async write<T>(job: (connection: Connection) => T): Promise<T> {
    return this.#retry(() => {
      const opened = this.#toWrite()
      const { connection } = opened
      return connection.transact(() => {
        this.#checkSchema(opened)
        return job(connection)
      })
    })
  }

  close(): void {
    this.#isClosed = true
    this.#end()
  }

  async #retry<T>(job: () => T): Promise<T> {
    const end = performance.now() + this.#options.busyTimeoutMs
    for (;;) {
      if (this.#isClosed) throw new PersistenceError('STORE_CLOSED', `the database is closed: ${this.path}`)
      try {
        return job()
      } catch (error) {
        if (!isBusy(error) || performance.now() >= end) throw error
      }
      await setTimeout(retryMs)
    }
  }

  /** A file that was taken away or replaced is let go: what it got from now on would be lost. */
  #current(): Opened | undefined {
    if (this.#opened !== undefined && this.#opened.identity !== this.#identity()) this.#end()
    return this.#opened
  }

  #identity(): string | undefined {
    return this.path === memoryPath ? undefined : identityOf(this.path)
  }

  #toWrite(): Opened {
    const current = this.#current()
    if (current?.mayWrite === true) return current
    this.#end()
    return this.#openToWrite()
  }

  #openToRead(): Opened | undefined {
    const { path } = this
    if (path === memoryPath) return this.#openToWrite()
    if (identityOf(path) === undefined || !checkPlace(path)) return undefined
    const connection = openReadOnly(path)
    if (connection === undefined) return this.#openToWrite()
    return this.#settle(connection, false, () => {
      if (isPristine(connection)) return false
      checkSchema(connection, path)
      return true
    })
  }

  #openToWrite(): Opened {
    const { path } = this
    if (path !== memoryPath) {
      preparePlace(path, build)
      checkPlace(path)
    }
    const connection = open(path, safeOptions)
    const opened = this.#settle(connection, true, () => {
      setUp(connection, path)
      connection.transact(() => ensureSchema(connection, path))
      selectJournal(connection, this.#options)
      return true
    })
    return opened as Opened
  }

  /** Keeps the connection where `check` gives true, and closes it else. */
  #settle(connection: Connection, mayWrite: boolean, check: () => boolean): Opened | undefined {
    try {
      if (check()) {
        const schema = connection.pragma('schema_version')
        this.#opened = { connection, identity: this.#identity(), mayWrite, schema }
        return this.#opened
      }
    } catch (error) {
      connection.close()
      throw error
    }
    connection.close()
    return undefined
  }

  /** The tables are looked at again where any program changed some since. */
  #checkSchema(opened: Opened): void {
    const schema = opened.connection.pragma('schema_version')
    if (schema === opened.schema) return
    checkSchema(opened.connection, this.path)
    opened.schema = schema
  }

  #end(): void {
    const opened = this.#opened
    this.#opened = undefined
    opened?.connection.close()
  }
}

function open(path: string | URL, options: DatabaseSyncOptions): Connection {
  const { DatabaseSync } = loadSqlite()
  return new Connection(new DatabaseSync(path, options))
}

function build(path: string): void {
  const connection = open(path, safeOptions)
  try {
    setUp(connection, path)
    connection.transact(() => ensureSchema(connection, path))
  } finally {
    connection.close()
  }
}

function ensureSchema(connection: Connection, path: string): void {
  if (isPristine(connection)) createSchema(connection)
  else checkSchema(connection, path)
}

/** Undefined where a write that broke off must be taken back before anything can be read. */
function openReadOnly(path: string): Connection | undefined {
  const options = { ...safeOptions, readOnly: true }
  const connection = open(path, options)
  try {
    setSafe(connection, path)
    connection.get('SELECT 1 AS found FROM sqlite_schema')
    return connection
  } catch (error) {
    connection.close()
    if (needsRollback(error)) return undefined
    // Write-ahead logs need a file for their index beside them. Where none can be made, nobody can write either.
    const code = sqliteCode(error)
    const isFixed = code === sqliteCodes.cannotOpen || code === sqliteCodes.readOnly
    if (!isFixed) throw error
    if (hasWriteAhead(path))
      throw new PersistenceError(
        'STORE_FAILED',
        `the last writes stand in ${path}-wal and cannot be read where nothing may be written; copy both files elsewhere`,
        { cause: error },
      )
    const url = pathToFileURL(path)
    url.search = 'immutable=1'
    return open(url, options)
  }
}

function isBusy(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === sqliteCodes.busy || code === sqliteCodes.locked
}

/** A rollback journal of a crashed program is in the way of a connection that may not write. */
function needsRollback(error: unknown): boolean {
  return (error as { errcode?: unknown } | null)?.errcode === 776
}

function hasWriteAhead(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
}

function setSafe(connection: Connection, path: string): void {
  // Functions in a foreign schema must not run, and a file that shrinks must not end the program.
  pin(connection, path, 'trusted_schema', 'OFF', 0)
  pin(connection, path, 'mmap_size', '0', 0)
}

function setUp(connection: Connection, path: string): void {
  setSafe(connection, path)
  pin(connection, path, 'synchronous', 'FULL', 2)
  // Only macOS has a sync that stops short of the disk.
  connection.exec('PRAGMA fullfsync = ON')
  connection.exec('PRAGMA checkpoint_fullfsync = ON')
  // What is removed is gone from the file too.
  connection.exec('PRAGMA secure_delete = ON')
}

function selectJournal(connection: Connection, { path, journalMode }: DatabaseOptions): void {
  if (path === memoryPath) return
  pin(connection, path, 'journal_mode', journalMode, journalMode)
}

/** A setting that cannot be had is an error, not a wish. */
function pin(connection: Connection, path: string, name: string, value: string, expected: unknown): void {
  connection.pragma(`${name} = ${value}`)
  const found = connection.pragma(name)
  // A database in memory has nothing to map.
  if (found === expected || (found === undefined && expected === 0)) return
  throw new PersistenceError(
    'STORE_FAILED',
    `the database cannot be used with ${name} = ${value} (it has ${String(found)}): ${path}`,
  )
}
