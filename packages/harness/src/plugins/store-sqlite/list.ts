import { setImmediate } from 'node:timers/promises'
import { SessionId, sessionFormatVersion } from '@dsh/protocol'
import type { SessionRow } from '../../core/session/index.ts'
import { newerFormatText, parseHeaderLine } from '../persistence/index.ts'
import type { Database } from './database.ts'
import { livingHolder } from './holder.ts'
import type { StoreHost } from './holder.ts'
import { fromKeyText, pageOf, revisionOf } from './sessions.ts'
import type { StoredRow } from './sessions.ts'

/** So many rows are read before other work gets its turn. */
const rowsAtOnce = 256

/** One row for each log, from its header alone. What cannot be read is a row with the reason. */
export async function listRows(
  database: Database,
  host: StoreHost,
  signal?: AbortSignal,
): Promise<readonly SessionRow[]> {
  const rows: SessionRow[] = []
  for (let after = -1; ;) {
    signal?.throwIfAborted()
    const from = after
    const page = await database.read(connection => pageOf(connection, from, rowsAtOnce))
    for (const row of page ?? []) rows.push(toRow(row, database.path, host))
    const last = page?.at(-1)
    if (last === undefined) return rows
    after = last.key
    await setImmediate()
  }
}

function toRow(row: StoredRow & { readonly id: string }, path: string, host: StoreHost): SessionRow {
  const id = SessionId(fromKeyText(row.id))
  const line = parseHeaderLine(row.header)
  if (typeof line === 'string') return { id, problem: line, path }
  const { header } = line
  if (header.id !== id) return { id, problem: `its header is that of session "${header.id}"`, path }
  if (header.version > sessionFormatVersion)
    return { id, problem: newerFormatText(header.version, path), path }
  const holder = livingHolder(row.holder, host)
  const { updatedAt, bytes } = row
  const found = { id, header, updatedAt, path, bytes, revision: revisionOf(row) }
  return holder === undefined ? found : { ...found, holder }
}
