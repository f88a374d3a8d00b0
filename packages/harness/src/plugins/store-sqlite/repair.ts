import type { LostEvents, RepairResult } from '../persistence/index.ts'
import { PersistenceError } from '../persistence/index.ts'
import { artifactNames, getArtifact, putArtifact } from './artifacts.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import type { StoreHost } from './holder.ts'
import { scanEvents } from './scan.ts'
import { findByKey } from './sessions.ts'
import type { StoredRow } from './sessions.ts'

// A limit ends a query at its last row; a comparison would read the one behind, which may be damaged.
const keep = 'UPDATE sessions SET kept_at = ?, holder = NULL WHERE key = ?'
const insertCopy = `INSERT INTO sessions (id, header, length, chain, bytes, updated_at)
  SELECT id, header, ?, (SELECT chain FROM events WHERE session = old.key AND seq = ?),
    (SELECT sum(octet_length(event)) FROM (SELECT event FROM events WHERE session = old.key ORDER BY seq LIMIT ?)),
    updated_at
  FROM sessions AS old WHERE key = ? RETURNING key`
const copyEvents = `INSERT INTO events (session, seq, event, chain)
  SELECT ?, seq, event, chain FROM events WHERE session = ? ORDER BY seq LIMIT ?`

interface Findings {
  /** How many events the log has before anything is wrong. */
  readonly length: number
  /** What is not among them; absent where nothing is wrong. */
  readonly lost?: readonly LostEvents[]
}

/**
 * Copies the sound beginning of a log under its id, and keeps the log itself beside it. For whoever has the right to
 * write it. Two writers cannot fork a log here, so that there are no branches.
 */
export async function repairLog(database: Database, row: StoredRow, host: StoreHost): Promise<RepairResult> {
  const { length, lost } = await findLosses(database, row)
  if (lost === undefined) return { events: length, branches: [] }
  if (length === 0)
    throw new PersistenceError(
      'SESSION_DAMAGED',
      `nothing of the log can be kept, it is damaged from the first event on: ${database.path}`,
    )
  await database.write(connection => {
    if (findByKey(connection, row.key) === undefined)
      throw new PersistenceError('STALE_APPEND', 'another program removed or repaired the session meanwhile')
    connection.run(keep, host.now(), row.key)
    const key = Number(connection.get(insertCopy, length, length - 1, length, row.key)?.['key'])
    connection.run(copyEvents, key, row.key, length)
    copyArtifacts(connection, row.key, key)
  })
  return {
    kept: `${database.path}, the row of sessions with key ${row.key}`,
    events: length,
    lost,
    branches: [],
  }
}

async function findLosses(database: Database, row: StoredRow): Promise<Findings> {
  const lost: LostEvents[] = []
  let length = 0
  let reason: string | undefined
  for await (const { gap, events } of scanEvents(database, row)) {
    reason = gap?.reason ?? reason
    if (gap !== undefined && gap.toSeq >= gap.fromSeq)
      lost.push({ fromSeq: gap.fromSeq, toSeq: gap.toSeq, reason: gap.reason })
    const [first] = events
    const last = events.at(-1)
    if (first === undefined || last === undefined) continue
    if (reason === undefined) length = last.seq + 1
    else addReadable(lost, { fromSeq: first.seq, toSeq: last.seq, reason, isReadable: true })
  }
  return reason === undefined ? { length } : { length, lost }
}

/** Batches that follow one another are one stretch. */
function addReadable(lost: LostEvents[], next: LostEvents): void {
  const before = lost.at(-1)
  if (before?.isReadable === true && before.toSeq + 1 === next.fromSeq)
    lost.splice(-1, 1, { ...before, toSeq: next.toSeq })
  else lost.push(next)
}

function copyArtifacts(connection: Connection, from: number, to: number): void {
  for (const sha256 of artifactNames(connection, from)) {
    const bytes = getArtifact(connection, from, sha256)
    if (bytes !== undefined) putArtifact(connection, to, sha256, bytes)
  }
}
