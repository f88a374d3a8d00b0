import type { SessionId } from '@dsh/protocol'
import type { Connection, Row } from './connection.ts'

/** A log as its row in `sessions` tells of it, and what its rows in `events` say to that. */
export interface StoredRow {
  readonly key: number
  readonly header: string
  readonly length: number
  readonly chain: string
  /** What its events take. */
  readonly bytes: number
  readonly updatedAt: number
  readonly holder: string | undefined
  /** How many events there are by the last of them. */
  readonly end: number
}

const columns = `key, id, header, length, chain, bytes, updated_at, holder,
  coalesce((SELECT max(seq) FROM events WHERE session = key), -1) + 1 AS stop`

const oneById = `SELECT ${columns} FROM sessions WHERE id = ? AND kept_at IS NULL`
const oneByKey = `SELECT ${columns} FROM sessions WHERE key = ? AND kept_at IS NULL`
const page = `SELECT key, id, header, length, chain, bytes, updated_at, holder, length AS stop FROM sessions
  WHERE key > ? AND length > 0 AND kept_at IS NULL ORDER BY key LIMIT ?`

export function findById(connection: Connection, id: SessionId): StoredRow | undefined {
  const row = connection.get(oneById, toKeyText(id))
  return row && toStoredRow(row)
}

export function findByKey(connection: Connection, key: number): StoredRow | undefined {
  const row = connection.get(oneByKey, key)
  return row && toStoredRow(row)
}

/** Logs with a key above `after`, in the order of their keys. */
export function pageOf(
  connection: Connection,
  after: number,
  limit: number,
): readonly (StoredRow & { readonly id: string })[] {
  return connection.all(page, after, limit).map(row => ({ ...toStoredRow(row), id: String(row['id']) }))
}

/** Changes with every event, and says the same of the same log. */
export function revisionOf({ length, chain }: StoredRow): string {
  return `${length}:${chain}`
}

/**
 * An id as text that no other id has. Text of a database is UTF-8, which has no half characters; such an id stands there
 * as JSON, and so does one that could be taken for that.
 */
export function toKeyText(id: string): string {
  return id.isWellFormed() && !/^"|\0/.test(id) ? id : JSON.stringify(id)
}

export function fromKeyText(text: string): string {
  return text.startsWith('"') ? (JSON.parse(text) as string) : text
}

function toStoredRow(row: Row): StoredRow {
  const { key, header, length, chain, bytes, updated_at: updatedAt, holder, stop } = row
  return {
    key: Number(key),
    header: String(header),
    length: Number(length),
    chain: String(chain),
    bytes: Number(bytes),
    updatedAt: Number(updatedAt),
    holder: typeof holder === 'string' ? holder : undefined,
    end: Number(stop),
  }
}
