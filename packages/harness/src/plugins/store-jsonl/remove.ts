import { dirname, join } from 'node:path'
import { PersistenceError } from '../persistence/index.ts'
import { errnoOf, unlessMissing } from './files/file-system.ts'
import type { FileSystem } from './files/file-system.ts'
import { readHeader } from './read/header.ts'
import { pathsIn } from './files/layout.ts'
import { underLock } from './files/lock.ts'
import type { LockHost } from './files/lock.ts'
import { assertOwn } from './read/open-log.ts'
import type { LogPlace } from './read/open-log.ts'
import { storeError } from './files/errors.ts'

/** What a log is called once it is removed and not all of its folder is gone yet. */
const removedName = 'removed.jsonl.zst'

/** Removes a session's folder. From the moment the log has lost its name, the rest is done by whoever sweeps. */
export async function removeLog(host: LockHost, place: LogPlace): Promise<boolean> {
  const { fs } = host
  const { lock, log } = pathsIn(place.folder)
  try {
    // Before the lock: nothing is written where the link leads to.
    if ((await fs.isLink?.(place.folder)) === true) throw linkedFolder(place)
    const isRemoved = await underLock(lock, host, async () => {
      const stat = await unlessMissing(fs.stat(log))
      if (stat === undefined) return false
      // One that cannot be read is the session's whose folder it lies in.
      const found = stat.kind === 'file' ? await readHeader(fs, log) : 'this is no file'
      if (typeof found !== 'string') assertOwn(found.header, place)
      await fs.rename(log, join(place.folder, removedName))
      await fs.syncFolder(place.folder)
      await finishRemoval(fs, place.folder)
      return true
    })
    await removeFolder(fs, place.folder)
    return isRemoved
  } catch (error) {
    throw storeError(error, place.id, place.folder, 'removed')
  }
}

/** What it leads to was put elsewhere by somebody, who knows what else needs it. */
function linkedFolder({ id, folder }: LogPlace): PersistenceError {
  const message = `session "${id}" lies behind a link, which is not followed to remove it; remove the link: ${folder}`
  return new PersistenceError('NOT_SUPPORTED', message)
}

/** Whether a removal began in this folder and did not end. */
export async function isHalfRemoved(fs: FileSystem, folder: string): Promise<boolean> {
  if ((await unlessMissing(fs.stat(pathsIn(folder).log))) !== undefined) return false
  return (await unlessMissing(fs.stat(join(folder, removedName)))) !== undefined
}

/** Removes all that lies in the folder but the lock; what says that it is removed goes last. For whoever has the lock. */
export async function finishRemoval(fs: FileSystem, folder: string): Promise<void> {
  const { lock } = pathsIn(folder)
  for (const name of await fs.readdir(folder)) {
    const path = join(folder, name)
    if (name !== removedName && !path.startsWith(lock)) await removeTree(fs, path)
  }
  await fs.syncFolder(folder)
  // What had the log's name may have been a folder.
  await removeTree(fs, join(folder, removedName))
  await fs.syncFolder(folder)
}

/** The folder itself, once nothing is in it; somebody else may begin a session there. */
export async function removeFolder(fs: FileSystem, folder: string): Promise<void> {
  try {
    await fs.rmdir(folder)
  } catch (error) {
    if (errnoOf(error) === 'ENOTEMPTY' || errnoOf(error) === 'ENOENT') return
    throw error
  }
  await fs.syncFolder(dirname(folder))
}

/** Links are removed and not followed. */
async function removeTree(fs: FileSystem, path: string): Promise<void> {
  try {
    await fs.unlink(path)
  } catch (error) {
    if (!folderCodes.has(errnoOf(error))) throw error
    for (const name of await fs.readdir(path)) await removeTree(fs, join(path, name))
    await fs.rmdir(path)
  }
}

/** How systems refuse to unlink a folder. */
const folderCodes: ReadonlySet<string | undefined> = new Set(['EISDIR', 'EPERM'])
