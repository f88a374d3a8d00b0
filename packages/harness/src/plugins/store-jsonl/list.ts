import { setImmediate } from 'node:timers/promises'
import { SessionId, sessionFormatVersion } from '@dsh/protocol'
import type { SessionRow } from '../../core/session/index.ts'
import { newerFormatText } from '../persistence/index.ts'
import type { HeaderLine } from '../persistence/index.ts'
import { errnoOf, unlessMissing } from './files/file-system.ts'
import type { FileStat } from './files/file-system.ts'
import { revisionOf, sessionFolders } from './files/find.ts'
import type { FoundFolder } from './files/find.ts'
import { readHeader } from './read/header.ts'
import { idOfFolder, pathsIn } from './files/layout.ts'
import { lockHolder } from './files/lock.ts'
import type { LockHost } from './files/lock.ts'

/** So many rows are read before other work gets its turn. */
const rowsAtOnce = 64

/** One row for each session folder, from its header frame alone. What cannot be read is a row with the reason. */
export async function listRows(
  host: LockHost,
  root: string,
  signal?: AbortSignal,
): Promise<readonly SessionRow[]> {
  const rows: SessionRow[] = []
  for await (const found of sessionFolders(host.fs, root)) {
    signal?.throwIfAborted()
    const row = await readRow(host, found)
    if (row !== undefined) rows.push(row)
    if (rows.length % rowsAtOnce === rowsAtOnce - 1) await setImmediate()
  }
  return markTwins(rows)
}

async function readRow(
  host: LockHost,
  { folder, name, problem }: FoundFolder,
): Promise<SessionRow | undefined> {
  const { fs } = host
  const id = idOfFolder(name)
  const path = problem === undefined ? pathsIn(folder).log : folder
  const broken = (reason: string): SessionRow => ({ id: id ?? SessionId(name), problem: reason, path })
  if (problem !== undefined) return broken(`the folder cannot be read: ${problem}`)
  try {
    const stat = await unlessMissing(fs.stat(path))
    if (stat === undefined) return undefined
    if (id === undefined) return broken('the folder has a name that no session has')
    if (stat.kind !== 'file') return broken('this is no file')
    const row = toRow(await readHeader(fs, path), stat, path, id)
    const holder = await lockHolder(pathsIn(folder).lock, host)
    return holder === undefined || !('header' in row) ? row : { ...row, holder }
  } catch (error) {
    return broken(`it cannot be read (${errnoOf(error) ?? String(error)})`)
  }
}

function toRow(found: HeaderLine | string, stat: FileStat, path: string, id: SessionId): SessionRow {
  if (typeof found === 'string') return { id, problem: found, path }
  const { header } = found
  if (header.id !== id) return { id, problem: `the log is that of session "${header.id}"`, path }
  if (header.version > sessionFormatVersion)
    return { id, problem: newerFormatText(header.version, path), path }
  return { id, header, updatedAt: stat.mtimeMs, path, bytes: stat.size, revision: revisionOf(stat) }
}

/** Two folders with one id are both refused, each naming the other. */
function markTwins(rows: readonly SessionRow[]): readonly SessionRow[] {
  const paths = Map.groupBy(rows, row => row.id)
  return rows.map(row => {
    const twins = (paths.get(row.id) ?? []).filter(other => other !== row)
    if (twins.length === 0) return row
    const problem = `session "${row.id}" is stored twice, here and in ${twins.map(({ path }) => path).join(', ')}`
    return { id: row.id, problem, path: row.path }
  })
}
