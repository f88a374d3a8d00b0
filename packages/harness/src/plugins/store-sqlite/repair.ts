import type { RepairResult } from '../persistence/index.ts'
import { PersistenceError } from '../persistence/index.ts'
import { artifactNames, getArtifact, putArtifact } from './artifacts.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import type { StoreHost } from './holder.ts'
import { scanEvents } from './scan.ts'
import { findByKey } from './sessions.ts'
import type { StoredRow } from './sessions.ts'

const keep = 'UPDATE sessions SET kept_at = ?, holder = NULL WHERE key = ?'
const insertCopy = `INSERT INTO sessions (id, header, length, chain, bytes, updated_at)
  SELECT id, header, ?, (SELECT chain FROM events WHERE session = old.key AND seq = ?),
    (SELECT sum(octet_length(event)) FROM events WHERE session = old.key AND seq < ?), updated_at
  FROM sessions AS old WHERE key = ? RETURNING key`
const copyEvents = `INSERT INTO events (session, seq, event, chain)
  SELECT ?, seq, event, chain FROM events WHERE session = ? AND seq < ? ORDER BY seq`

/**
 * Copies the sound beginning of a log under its id, and keeps the log itself beside it. For whoever has the right to
 * write it.
 */
export async function repairLog(database: Database, row: StoredRow, host: StoreHost): Promise<RepairResult> {
  const sound = await soundLength(database, row)
  if (sound === undefined) return { events: row.length, branches: [] }
  if (sound === 0)
    throw new PersistenceError(
      'SESSION_DAMAGED',
      'its log is damaged from the first event on; nothing could be kept',
    )
  await database.write(connection => {
    if (findByKey(connection, row.key) === undefined)
      throw new PersistenceError('STALE_APPEND', 'another program removed or repaired it meanwhile')
    connection.run(keep, host.now(), row.key)
    const key = Number(connection.get(insertCopy, sound, sound - 1, sound, row.key)?.['key'])
    connection.run(copyEvents, key, row.key, sound)
    copyArtifacts(connection, row.key, key)
  })
  return { kept: `${database.path}, session with key ${row.key}`, events: sound, branches: [] }
}

/** How many events stand before the first damage; undefined where there is none. */
async function soundLength(database: Database, row: StoredRow): Promise<number | undefined> {
  let length = 0
  for await (const { gap, events } of scanEvents(database, row)) {
    if (gap !== undefined) return length
    length += events.length
  }
  return undefined
}

function copyArtifacts(connection: Connection, from: number, to: number): void {
  for (const sha256 of artifactNames(connection, from)) {
    const bytes = getArtifact(connection, from, sha256)
    if (bytes !== undefined) putArtifact(connection, to, sha256, bytes)
  }
}
