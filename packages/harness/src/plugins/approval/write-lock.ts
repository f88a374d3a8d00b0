import { randomUUID } from 'node:crypto'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { HarnessError } from '../../kernel/index.ts'
import { isDead, ownPid } from './env.ts'

const attempts = 40
const longestWaitMs = 50

/**
 * Runs `job` while no other program does so for the same `path`. The lock of a program that is dead is taken over; one
 * that stays for seconds is left alone, and the job does not run.
 */
export async function underWriteLock<T>(path: string, job: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`
  const claim = `${lock}.${randomUUID()}`
  await writeFile(claim, String(ownPid()), { mode: 0o600, flag: 'wx' })
  try {
    await acquire(claim, lock)
  } finally {
    await unlink(claim)
  }
  try {
    return await job()
  } finally {
    await unlink(lock)
  }
}

/** A link appears complete: nobody ever reads half a name. */
async function acquire(claim: string, lock: string): Promise<void> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    if (await isLinked(claim, lock)) return
    await removeDead(lock)
    await setTimeout(Math.random() * longestWaitMs)
  }
  const owner = await readFile(lock, 'utf8').catch(() => '')
  throw new HarnessError(
    'PERMISSIONS_LOCKED',
    `the rules are being changed by process ${owner}; if there is none, remove "${lock}"`,
  )
}

async function isLinked(claim: string, lock: string): Promise<boolean> {
  try {
    await link(claim, lock)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Moved aside first, so that of two who see the same dead owner one alone takes it away. */
async function removeDead(lock: string): Promise<void> {
  const owner = await readFile(lock, 'utf8').catch(() => undefined)
  if (owner === undefined || !isDead(Number(owner))) return
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

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
