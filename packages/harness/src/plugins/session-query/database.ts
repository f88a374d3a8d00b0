import { chmod, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { DatabaseSync } from 'node:sqlite'
import { makeFolders, messageOf } from '../../kernel/index.ts'
import { loadSqlite, sqliteCode, sqliteCodes } from '../persistence/index.ts'
import { SessionQueryError } from './errors.ts'
import {
  applicationId,
  createSchema,
  dropSchema,
  hasTables,
  schemaVersion,
  temporarySchema,
} from './schema.ts'

export interface IndexDatabase {
  readonly db: DatabaseSync
  /** Why it is not the file that was asked for: it can only be read, or stands in memory. */
  readonly problem?: string
  readonly isWritable: boolean
  /** Of the file, to see whether it is still there; undefined in memory. */
  readonly identity: string | undefined
}

const sqliteMagic = 'SQLite format 3\0'
const headerBytes = 100
const applicationIdAt = 68
/** Of one attempt, which blocks; whoever has more time asks again. */
const busyTimeoutMs = 40
const pauseMs = 20
/** Each checkpoint waits for the disk. */
const checkpointPages = 8000
const cacheKb = 16_384

/** What stands in the index is not what was written. */
export class IndexDamage extends Error {}

/** What a rebuilt index would not fail with. */
export function isDamage(error: unknown): boolean {
  const code = sqliteCode(error)
  return (
    error instanceof IndexDamage ||
    code === sqliteCodes.corrupt ||
    code === sqliteCodes.notADatabase ||
    code === sqliteCodes.ioError ||
    code === sqliteCodes.error
  )
}

/** Whether it is a matter of writing alone: what is there can be read. */
export function isWriteTrouble(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === sqliteCodes.busy || code === sqliteCodes.full || code === sqliteCodes.readOnly
}

/**
 * Opens the index at `path`, made where nothing is there and made anew where it is damaged, too big or of another
 * version. A file that is no database is moved aside. Rejects with INDEX_FAILED for a database that is not ours, which
 * stays as it is. Where the file cannot be written it is read; where not even that, the index stands in memory.
 */
export async function openIndex(path: string, maxFileBytes: number): Promise<IndexDatabase> {
  const problem = await makeRoom(path, maxFileBytes)
  if (problem !== undefined) return inMemory(problem)
  try {
    return await openFile(path).catch(async (error: unknown) => {
      if (!isBroken(error)) throw error
      await discardIndex(path)
      return await openFile(path)
    })
  } catch (error) {
    if (error instanceof SessionQueryError) throw error
    if (!isDamage(error) && !isWriteTrouble(error) && sqliteCode(error) !== sqliteCodes.cannotOpen)
      throw failed(path, error)
    return (await readOnly(path, messageOf(error))) ?? inMemory(messageOf(error))
  }
}

/** Removes the index, which is derived from the logs and made again. */
export async function discardIndex(path: string): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) await rm(file, { force: true })
}

export async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path)
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

/** Begins to write, once others who do so let us; false where that takes longer than `patienceMs`. */
export async function beginWriting(db: DatabaseSync, patienceMs: number): Promise<boolean> {
  const until = performance.now() + patienceMs
  for (;;) {
    try {
      db.exec('BEGIN IMMEDIATE')
      return true
    } catch (error) {
      if (sqliteCode(error) !== sqliteCodes.busy) throw error
      if (performance.now() >= until) return false
    }
    await setTimeout(pauseMs)
  }
}

/** Gives why there can be no file. */
async function makeRoom(path: string, maxFileBytes: number): Promise<string | undefined> {
  try {
    makeFolders(dirname(path))
    // To open a pipe would be to wait for ever.
    const isFile = (await stat(path).catch(() => undefined))?.isFile() ?? true
    if (!isFile) throw failed(path, new TypeError('this is no file'))
    const kind = await kindOf(path, maxFileBytes)
    if (kind === 'foreign') await rename(path, `${path}.damaged`)
    if (kind === 'foreign' || kind === 'too big') await discardIndex(path)
    const file = await open(path, 'a', 0o600)
    await file.close()
    if (kind !== 'database') await chmod(path, 0o600)
    return undefined
  } catch (error) {
    if (error instanceof SessionQueryError) throw error
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM')
      return (await isThere(path)) ? undefined : messageOf(error)
    return messageOf(error)
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await identityOf(path)) !== undefined
}

/** What stands at `path`, from its first bytes: SQLite is not asked about what is none of its files. */
async function kindOf(
  path: string,
  maxFileBytes: number,
): Promise<'none' | 'database' | 'foreign' | 'too big'> {
  let size: number
  let head: Buffer
  try {
    const file = await open(path, 'r')
    try {
      ;({ size } = await file.stat())
      head = (await file.read(Buffer.alloc(headerBytes), 0, headerBytes, 0)).buffer.subarray(
        0,
        Math.min(size, headerBytes),
      )
    } finally {
      await file.close()
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'none'
    throw error
  }
  if (size === 0) return 'database'
  if (!head.toString('latin1').startsWith(sqliteMagic)) return 'foreign'
  const isOurs = head.length === headerBytes && head.readUInt32BE(applicationIdAt) === applicationId
  return isOurs && size > maxFileBytes ? 'too big' : 'database'
}

async function openFile(path: string): Promise<IndexDatabase> {
  const identity = await identityOf(path)
  const db = openDatabase(path)
  try {
    await prepareFile(db, path)
    db.exec('PRAGMA synchronous = NORMAL')
    db.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
    db.exec(`PRAGMA cache_size = -${cacheKb}`)
    db.exec(temporarySchema)
    return { db, isWritable: true, identity }
  } catch (error) {
    db.close()
    throw error
  }
}

function isBroken(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === sqliteCodes.corrupt || code === sqliteCodes.notADatabase
}

function openDatabase(path: string, options: { readonly readOnly?: boolean } = {}): DatabaseSync {
  const { DatabaseSync } = loadSqlite()
  const db = new DatabaseSync(path, options)
  db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  db.exec('PRAGMA temp_store = MEMORY')
  return db
}

/** Nothing is written before it is known to be ours, or nobody's. */
async function prepareFile(db: DatabaseSync, path: string): Promise<void> {
  if (isCurrent(db)) return
  assertOurs(db, path)
  await retried(() => db.exec('PRAGMA journal_mode = WAL'))
  if (!(await beginWriting(db, 1000)))
    throw new SessionQueryError(
      'SESSION_QUERY_INDEX_FAILED',
      `the index is being made by another program: ${path}`,
    )
  try {
    if (!isCurrent(db)) {
      assertOurs(db, path)
      dropSchema(db)
      createSchema(db)
    }
    db.exec('COMMIT')
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

async function retried(job: () => void): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return job()
    } catch (error) {
      if (sqliteCode(error) !== sqliteCodes.busy || attempt === 10) throw error
    }
    await setTimeout(pauseMs)
  }
}

function isCurrent(db: DatabaseSync): boolean {
  return pragma(db, 'application_id') === applicationId && pragma(db, 'user_version') === schemaVersion
}

function assertOurs(db: DatabaseSync, path: string): void {
  const isEmpty = pragma(db, 'user_version') === 0 && !hasTables(db)
  // Read last: another program may set it in this moment, together with the tables.
  const id = pragma(db, 'application_id')
  if (id === applicationId || (id === 0 && isEmpty)) return
  throw new SessionQueryError(
    'SESSION_QUERY_INDEX_FAILED',
    `this is the database of another program: ${path}`,
  )
}

function pragma(db: DatabaseSync, name: string): unknown {
  return db.prepare(`PRAGMA ${name}`).get()?.[name]
}

async function readOnly(path: string, problem: string): Promise<IndexDatabase | undefined> {
  try {
    const identity = await identityOf(path)
    const db = openDatabase(path, { readOnly: true })
    if (isCurrent(db)) {
      db.exec(temporarySchema)
      return { db, isWritable: false, problem, identity }
    }
    db.close()
    return undefined
  } catch {
    // Then there is nothing to read either.
    return undefined
  }
}

async function inMemory(problem: string): Promise<IndexDatabase> {
  const db = openDatabase(':memory:')
  createSchema(db)
  db.exec(temporarySchema)
  return { db, isWritable: true, problem, identity: undefined }
}

export function failed(path: string, cause: unknown): SessionQueryError {
  return new SessionQueryError(
    'SESSION_QUERY_INDEX_FAILED',
    `the index cannot be used: ${messageOf(cause)}: ${path}`,
    {
      cause,
    },
  )
}
