import { setImmediate } from 'node:timers/promises'
import { unlessMissing } from './files/file-system.ts'
import { sessionFolders } from './files/find.ts'
import { pathsIn } from './files/layout.ts'
import { isAbandoned, underLock } from './files/lock.ts'
import type { LockHost } from './files/lock.ts'
import { removeDrafts } from './files/publish.ts'
import { repackWhereWorthIt } from './repack.ts'
import { finishRemoval, isHalfRemoved, removeFolder } from './remove.ts'

/** After so long no other log is packed; the next sweep goes on. */
const longestRepackMs = 2000
/** No log is packed for longer than this, so an older draft is nobody's. */
const draftMs = 3_600_000

/**
 * Removes drafts and locks that dead programs left, the folders of sessions that never got a log, and what is left of
 * those that were removed; packs logs while there is time. Only a lock whose owner is dead shows that a folder was left;
 * what cannot be changed stays.
 */
export async function sweepFolders(host: LockHost, root: string, signal: AbortSignal): Promise<void> {
  const start = performance.now()
  for await (const { folder } of sessionFolders(host.fs, root)) {
    if (signal.aborted) return
    await sweepFolder(host, folder).catch(() => undefined)
    if (host.fs.setTime !== undefined && performance.now() - start < longestRepackMs)
      await repackWhereWorthIt(host, folder, { signal }).catch(() => undefined)
    // Nobody waits for this, and others may want the time.
    await setImmediate()
  }
}

async function sweepFolder(host: LockHost, folder: string): Promise<void> {
  const { fs } = host
  const paths = pathsIn(folder)
  const isRemoved = await isHalfRemoved(fs, folder)
  if (!isRemoved && !(await isAbandoned(paths.lock, host)))
    return removeDrafts(fs, folder, host.now() - draftMs)
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
