import { unlessMissing } from './file-system.ts'
import { sessionFolders } from './find.ts'
import { pathsIn } from './layout.ts'
import { acquireLock, isAbandoned } from './lock.ts'
import type { LockHost } from './lock.ts'
import { removeDrafts } from './publish.ts'

/**
 * Removes drafts and locks that dead programs left, and the folders of sessions that never got a log. Only a lock whose
 * owner is dead shows that a folder was left; what cannot be changed stays.
 */
export async function sweepFolders(host: LockHost, root: string): Promise<void> {
  for await (const { folder } of sessionFolders(host.fs, root)) {
    await sweepFolder(host, folder).catch(() => undefined)
  }
}

async function sweepFolder(host: LockHost, folder: string): Promise<void> {
  const paths = pathsIn(folder)
  if (!(await isAbandoned(paths.lock, host))) return
  const lock = await acquireLock(paths.lock, host)
  try {
    await removeDrafts(host.fs, folder)
    await removeDrafts(host.fs, paths.artifacts)
  } finally {
    await lock.release()
  }
  if ((await unlessMissing(host.fs.stat(paths.log))) !== undefined) return
  // Folders that hold anything else stay.
  await host.fs.rmdir(paths.artifacts).catch(() => undefined)
  await host.fs.rmdir(folder)
}
