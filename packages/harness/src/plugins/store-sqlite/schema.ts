import { PersistenceError } from '../persistence/index.ts'
import type { Connection } from './connection.ts'

/** "dshs": stands in the header of the file, so that the database of another program is known without opening it. */
const applicationId = 0x64736873
const schemaVersion = 1

/**
 * `sessions.length` and `sessions.chain` are those of the last event, and `sessions.bytes` is what all events take; a row of length 0 holds artifacts of a session
 * that has no event yet. A log that a repair put aside has a time in `kept_at`. An `event` is JSON, or from 4 KiB on
 * Zstandard of it; its `chain` is a hash over the one before and the JSON.
 */
const definitions = [
  `CREATE TABLE sessions (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  kept_at INTEGER,
  header TEXT NOT NULL,
  length INTEGER NOT NULL,
  chain TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  holder TEXT
) STRICT`,
  'CREATE UNIQUE INDEX sessions_by_id ON sessions (id) WHERE kept_at IS NULL',
  `CREATE TABLE events (
  session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  event ANY NOT NULL,
  chain TEXT NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID`,
  `CREATE TABLE artifacts (
  session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
  sha256 TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (session, sha256)
) STRICT`,
] as const

const ownObjects =
  "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"

/** Makes the tables. For whoever has the database for writing, and found it empty. */
export function createSchema(connection: Connection): void {
  for (const definition of definitions) connection.exec(definition)
  connection.exec(`PRAGMA application_id = ${applicationId}`)
  connection.exec(`PRAGMA user_version = ${schemaVersion}`)
}

/** True for a database that nobody put anything into. */
export function isPristine(connection: Connection): boolean {
  return (
    connection.pragma('application_id') === 0 &&
    connection.pragma('user_version') === 0 &&
    connection.get('SELECT 1 AS found FROM sqlite_schema') === undefined
  )
}

/** Throws unless the tables are exactly ours: another program's trigger or column could change what is stored. */
export function checkSchema(connection: Connection, path: string): void {
  checkVersion(Number(connection.pragma('application_id')), Number(connection.pragma('user_version')), path)
  const found = connection.all(ownObjects).map(({ sql }) => String(sql))
  const expected: readonly string[] = definitions
  const isSame = found.length === expected.length && expected.every(sql => found.includes(sql))
  if (!isSame) throw foreign(path, 'its tables are not those that this version makes')
}

export function checkVersion(application: number, version: number, path: string): void {
  if (application !== applicationId) throw foreign(path, 'it belongs to another program')
  if (version > schemaVersion)
    throw new PersistenceError(
      'SESSION_FORMAT_NEWER',
      `the database was written by a newer dsh (format ${version}, this one knows ${schemaVersion}): ${path}`,
    )
  if (version !== schemaVersion) throw foreign(path, `it has format ${version}`)
}

function foreign(path: string, reason: string): PersistenceError {
  return new PersistenceError(
    'STORE_FAILED',
    `the database is not used, and left as it is: ${reason}: ${path}`,
  )
}
