import { join } from 'node:path'
import type { SessionId } from '@dsh/protocol'
import { messageOf } from '../../../kernel/index.ts'
import { PersistenceError, systemReason } from '../../persistence/index.ts'
import { storeError } from './errors.ts'
import { errnoOf, unlessMissing } from './file-system.ts'
import type { FileStat, FileSystem } from './file-system.ts'
import { pathsIn, sessionFolder } from './layout.ts'

/** The folder that holds the log of `id`, in whatever project. Rejects with SESSION_AMBIGUOUS where several do. */
export async function findFolder(fs: FileSystem, root: string, id: SessionId): Promise<string | undefined> {
  const name = sessionFolder(id)
  const found: string[] = []
  const projects = await unlessMissing(fs.readdir(root)).catch((error: unknown) => {
    throw storeError(error, id, root, 'looked for')
  })
  for (const project of projects ?? []) {
    const folder = join(root, project, name)
    // A project that cannot be looked into must not hide the sessions of the others.
    const log = await unlessMissing(fs.stat(pathsIn(folder).log)).catch(() => undefined)
    if (log !== undefined) found.push(folder)
  }
  if (found.length > 1)
    throw new PersistenceError('SESSION_AMBIGUOUS', `session "${id}" is stored twice: ${found.join(' and ')}`)
  return found[0]
}

export interface FoundFolder {
  readonly folder: string
  readonly name: string
  /** Why what is in it cannot be told; then it is the folder of a project. */
  readonly problem?: string
}

/** Every folder that stands where a session's would. */
export async function* sessionFolders(fs: FileSystem, root: string): AsyncGenerator<FoundFolder> {
  for (const project of (await unlessMissing(fs.readdir(root)).catch(error => notListed(error, root))) ??
    []) {
    const folder = join(root, project)
    const names = await unlessMissing(fs.readdir(folder)).catch((error: unknown) => String(error))
    if (typeof names === 'string') yield { folder, name: project, problem: names }
    else for (const name of names ?? []) yield { folder: join(folder, name), name }
  }
}

function notListed(error: unknown, root: string): never {
  const reason = systemReason(errnoOf(error) ?? '') ?? messageOf(error)
  throw new PersistenceError('STORE_FAILED', `the sessions cannot be listed: ${reason}: ${root}`, {
    cause: error,
  })
}

/** Stays the same exactly as long as nothing was written. */
export function revisionOf(stat: FileStat): string {
  return `${stat.identity}:${stat.size}:${stat.mtimeMs}`
}
