import { PersistenceError, sqliteCode, sqliteCodes, systemReason } from '../persistence/index.ts'

const reasons: Readonly<Record<number, string>> = {
  [sqliteCodes.busy]: 'another program keeps the database locked',
  [sqliteCodes.locked]: 'another program keeps the database locked',
  [sqliteCodes.readOnly]: 'the database may not be written',
  [sqliteCodes.ioError]: 'the device failed',
  [sqliteCodes.corrupt]: 'the database is damaged',
  [sqliteCodes.full]: 'no space is left on the device',
  [sqliteCodes.cannotOpen]: 'the database cannot be opened',
  [sqliteCodes.notADatabase]: 'this is no database',
}

/** Errors of the store stay; those of SQLite and the system get a sentence and the place. `doing` begins it. */
export function storeError(error: unknown, doing: string, path: string): unknown {
  if (error instanceof PersistenceError) return error
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const reason = reasonOf(first)
  if (reason === undefined) return error
  return new PersistenceError('STORE_FAILED', `${doing}: ${reason}: ${path}`, { cause: error })
}

function reasonOf(error: unknown): string | undefined {
  const { errcode, code, message } = error as { errcode?: number; code?: unknown; message?: string }
  if (errcode !== undefined) return reasons[sqliteCode(error) ?? 0] ?? message
  return typeof code === 'string' ? (systemReason(code) ?? message) : undefined
}
