import { unlessMissing } from './file-system.ts'
import { sessionFolders } from './find.ts'
import { pathsIn } from './layout.ts'
import { isAbandoned, underLock } from './lock.ts'
import type { LockHost } from './lock.ts'
import { removeDrafts } from './publish.ts'
import { finishRemoval, isHalfRemoved, removeFolder } from './remove.ts'

/**
 * Removes drafts and locks that dead programs left, the folders of sessions that never got a log, and what is left of
 * those that were removed. Only a lock whose owner is dead shows that a folder was left; what cannot be changed stays.
 */
export async function sweepFolders(host: LockHost, root: string): Promise<void> {
  for await (const { folder } of sessionFolders(host.fs, root)) {
    await sweepFolder(host, folder).catch(() => undefined)
  }
}

async function sweepFolder(host: LockHost, folder: string): Promise<void> {
  const { fs } = host
  const paths = pathsIn(folder)
  const isRemoved = await isHalfRemoved(fs, folder)
  if (!isRemoved && !(await isAbandoned(paths.lock, host))) return
  await underLock(paths.lock, host, async () => {
    await removeDrafts(fs, folder)
    await removeDrafts(fs, paths.artifacts)
    // Looked at again, now that nobody else can begin a session here.
    if (await isHalfRemoved(fs, folder)) await finishRemoval(fs, folder)
  })
  if ((await unlessMissing(fs.stat(paths.log))) !== undefined) return
  // Folders that hold anything else stay.
  await fs.rmdir(paths.artifacts).catch(() => undefined)
  await removeFolder(fs, folder)
}
