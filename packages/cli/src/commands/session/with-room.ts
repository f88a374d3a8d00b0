import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../../run/fixes.ts'

/**
 * Does what makes room. On a full disk even that needs some: then what the cache holds goes, which is made again when it
 * is needed. The index goes last, since it costs the most to make.
 */
export async function withRoom<T>(home: string, job: () => Promise<T>): Promise<T> {
  const cache = join(home, 'cache')
  const butTheIndex = (name: string): boolean => !name.startsWith('index.')
  const afterCache = afterRoom(job, () => emptyFolder(cache, butTheIndex))
  return afterRoom(afterCache, () => emptyFolder(cache, () => true))()
}

/** `job`, and where the disk is full, once more after `makeRoom`. */
function afterRoom<T>(job: () => Promise<T>, makeRoom: () => Promise<void>): () => Promise<T> {
  return async () => {
    try {
      return await job()
    } catch (error) {
      if (errnoOf(error) !== 'ENOSPC') throw error
      await makeRoom()
      return await job()
    }
  }
}

async function emptyFolder(folder: string, isGiven: (name: string) => boolean): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names.filter(isGiven))
    await rm(join(folder, name), { recursive: true, force: true }).catch(() => undefined)
}
