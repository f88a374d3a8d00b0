import type { SessionId } from '@dsh/protocol'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import { assertFree, livingHolder } from './holder.ts'
import type { StoreHost } from './holder.ts'
import { findById, toKeyText } from './sessions.ts'

const deleteAll = 'DELETE FROM sessions WHERE id = ?'
const deleteOne = 'DELETE FROM sessions WHERE key = ?'
const unbegun = 'SELECT key, holder FROM sessions WHERE length = 0 AND holder IS NOT NULL AND kept_at IS NULL'

/** Removes a log with its artifacts and what repairs kept of it; false where nothing is stored. */
export async function removeSession(database: Database, id: SessionId, host: StoreHost): Promise<boolean> {
  // Only looked at first, so that nothing is made where there is nothing.
  const found = await database.read(connection => findById(connection, id))
  if (found === undefined) return false
  return database.write(connection => {
    const row = findById(connection, id)
    if (row === undefined) return false
    assertFree(row.holder, host)
    return connection.run(deleteAll, toKeyText(id)) > 0
  })
}

/** Removes what dead programs kept for sessions that never got an event. */
export async function sweepSessions(database: Database, host: StoreHost): Promise<void> {
  const dead = await database.read(connection => deadKeys(connection, host))
  if (dead === undefined || dead.length === 0) return
  await database.write(connection => {
    for (const key of deadKeys(connection, host)) connection.run(deleteOne, key)
  })
}

function deadKeys(connection: Connection, host: StoreHost): readonly number[] {
  const rows = connection.all(unbegun)
  const dead = rows.filter(({ holder }) => livingHolder(String(holder), host) === undefined)
  return dead.map(({ key }) => Number(key))
}
