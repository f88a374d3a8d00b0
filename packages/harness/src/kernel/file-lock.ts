import { randomUUID } from 'node:crypto'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { isGone, ownPid } from './env.ts'
import { HarnessError } from './errors.ts'
import { KeyedLocks } from './keyed-locks.ts'
import { makeFolders } from './make-folders.ts'

const attempts = 40
const longestWaitMs = 50
/** Those of this process wait for each other, however long. */
const jobs = new KeyedLocks<string>()

/**
 * Runs `job` while nobody else does so for the same `path`, here or in another program, and makes the folder of it. The
 * lock of a program that is dead is taken over; one that stays for seconds is left alone: FILE_LOCKED, and the job does
 * not run.
 */
export async function underFileLock<T>(path: string, job: () => Promise<T>): Promise<T> {
  return await jobs.run(path, async () => {
    const lock = `${path}.lock`
    makeFolders(dirname(path))
    await acquire(lock, path)
    try {
      return await job()
    } finally {
      await unlink(lock)
    }
  })
}

/** A link appears complete: nobody ever reads half a name. */
async function acquire(lock: string, path: string): Promise<void> {
  const claim = `${lock}.${randomUUID()}`
  await writeFile(claim, String(ownPid()), { mode: 0o600, flag: 'wx' })
  try {
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      if (await isLinked(claim, lock)) return
      await removeDead(lock)
      await setTimeout(Math.random() * longestWaitMs)
    }
  } finally {
    await unlink(claim)
  }
  const owner = await readFile(lock, 'utf8').catch(() => '')
  throw new HarnessError(
    'FILE_LOCKED',
    `"${path}" is being changed by process ${owner}; if there is none, remove "${lock}"`,
  )
}

async function isLinked(claim: string, lock: string): Promise<boolean> {
  try {
    await link(claim, lock)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Moved aside first, so that of two who see the same dead owner one alone takes it away. */
async function removeDead(lock: string): Promise<void> {
  const owner = await readFile(lock, 'utf8').catch(() => undefined)
  if (owner === undefined || !isGone(Number(owner))) return
  const aside = `${lock}.${randomUUID()}`
  const isMoved = await rename(lock, aside).then(
    () => true,
    () => false,
  )
  if (!isMoved) return
  // Whoever came between has its lock back.
  if ((await readFile(aside, 'utf8')) !== owner) await link(aside, lock).catch(() => {})
  await unlink(aside)
}
