import { randomUUID } from 'node:crypto'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { HarnessError } from '../../kernel/index.ts'
import { isDead, ownPid } from './env.ts'

const attempts = 40
const longestWaitMs = 50

/** Runs `job` while no other program does so for the same `path`. The lock of a program that is dead is taken over. */
export async function underLock<T>(path: string, job: () => Promise<T>): Promise<T> {
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

/** A link appears complete: nobody ever reads half an owner. */
async function acquire(claim: string, lock: string): Promise<void> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      await link(claim, lock)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    await removeDead(lock)
    await setTimeout(Math.random() * longestWaitMs)
  }
  throw new HarnessError(
    'TRUST_LOCKED',
    `another program changes what is trusted; if none does, remove "${lock}"`,
  )
}

/** Moved aside first, so that of two who see the same dead owner one alone takes it away. */
async function removeDead(lock: string): Promise<void> {
  const owner = await readFile(lock, 'utf8').catch(() => undefined)
  if (owner === undefined || !isDead(Number(owner))) return
  const aside = `${lock}.${randomUUID()}`
  await rename(lock, aside).catch(() => {})
  const moved = await readFile(aside, 'utf8').catch(() => undefined)
  if (moved === undefined) return
  // Whoever came between has its lock back.
  if (moved !== owner) await link(aside, lock).catch(() => {})
  await unlink(aside)
}
