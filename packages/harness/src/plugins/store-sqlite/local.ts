import type { DatabaseSync } from 'node:sqlite'
import { PersistenceError } from '../persistence/index.ts'

type Sqlite = { readonly DatabaseSync: typeof DatabaseSync }

/** SQLite is loaded with the first database and not before; older Nodes would say then that it is experimental. */
export function loadSqlite(): Sqlite {
  const { emitWarning } = process
  const isExpected = (warning: unknown): boolean => String(warning).startsWith('SQLite is an experimental')
  process.emitWarning = ((warning: unknown, ...rest: readonly unknown[]): void => {
    if (!isExpected(warning)) Reflect.apply(emitWarning, process, [warning, ...rest])
  }) as typeof emitWarning
  try {
    const sqlite: Sqlite | undefined = process.getBuiltinModule('node:sqlite')
    if (sqlite === undefined) throw new PersistenceError('STORE_FAILED', 'this Node has no SQLite')
    return sqlite
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Whose files are safe; undefined on Windows, where the rights of files are not in their modes. */
export function currentUser(): number | undefined {
  return process.getuid?.()
}

/** Windows cannot open folders; there the names are as durable as its file system makes them. */
export const canSyncFolders = process.platform !== 'win32'
