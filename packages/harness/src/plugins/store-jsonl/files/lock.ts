import { randomUUID } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { SessionHolder } from '../../../core/session/index.ts'
import { parseJson } from '../../../kernel/index.ts'
import { heldBy, parseOwner, PersistenceError, toHolder, unknownHolder } from '../../persistence/index.ts'
import type { LogOwner, Processes } from '../../persistence/index.ts'
import { errnoOf, hasNoLinks, isNoFile, unlessMissing, writeAll } from './file-system.ts'
import type { FileSystem } from './file-system.ts'

export interface LockHost {
  readonly fs: FileSystem
  readonly processes: Processes
  readonly now: () => number
}

/** The right to write beside the file `path`, until `release`. */
export interface Lock {
  /** Rejects with SESSION_HELD or LOCK_LOST where the file no longer names this lock. */
  check(): Promise<void>
  release(): Promise<void>
}

export interface LockOptions {
  /** Takes the lock from this holder, though it may live. */
  readonly from?: SessionHolder | undefined
}

/** What a file says that names nobody: something else, or no more than the beginning of a name. */
type Nobody = 'unreadable' | 'unfinished'

/** Nonces of locks that programs of this process gave back, and whose files could not be removed. */
const givenBack = new Set<string>()

const attempts = 5
/** Long enough for another's few system calls. */
const longestWaitMs = 20

/**
 * Whoever wants the lock first lays a claim beside it, complete and on the disk, under a name of its own. A free lock
 * is taken by linking the claim to its name. A dead owner's is taken by renaming the claim over it, and only while no
 * other claim of a living process is there: each lays its claim before it looks, so two can never both see none.
 */
export async function acquireLock(path: string, host: LockHost, options: LockOptions = {}): Promise<Lock> {
  const owner: LogOwner = { ...host.processes.self(), since: host.now(), nonce: randomUUID() }
  for (let attempt = 1; !(await tryAcquire(path, owner, host, options)); attempt += 1) {
    if (attempt === attempts) throw heldError(path, await readOwner(host.fs, path))
    await setTimeout(Math.random() * longestWaitMs)
  }
  const lock = toLock(path, owner, host)
  try {
    // The last owner may have died before what it did here was durable.
    await host.fs.syncFolder(dirname(path))
  } catch (error) {
    await lock.release().catch(() => undefined)
    throw error
  }
  // The lock is ours, whatever becomes of what others left.
  await removeDeadClaims(path, host).catch(() => undefined)
  return lock
}

/** False where something was in the way that may be gone soon. */
async function tryAcquire(
  path: string,
  owner: LogOwner,
  host: LockHost,
  options: LockOptions,
): Promise<boolean> {
  const claim = `${path}.${randomUUID()}`
  try {
    await writeOwner(host.fs, claim, owner)
    return (await tryLink(host.fs, claim, path, owner)) || (await tryReplace(path, claim, host, options))
  } catch (error) {
    // Another one took the claim for a dead program's before it was complete.
    if (errnoOf(error) === 'ENOENT' && (await isThere(host.fs, dirname(path)))) return false
    throw error
  } finally {
    // One that stays is in nobody's way for longer than this process lives.
    await host.fs.unlink(claim).catch(() => undefined)
  }
}

/** Has the lock for as long as `job` takes. */
export async function underLock<T>(
  path: string,
  host: LockHost,
  job: (lock: Lock) => Promise<T>,
): Promise<T> {
  const lock = await acquireLock(path, host)
  try {
    return await job(lock)
  } finally {
    // What stays locked is so until this program ends, so a short failure is not the last word.
    await lock.release().catch(() => lock.release())
  }
}

/** Who has the lock and is not known to be dead. */
export async function lockHolder(path: string, host: LockHost): Promise<SessionHolder | undefined> {
  const owner = await readOwner(host.fs, path)
  if (owner === undefined || (await isLeft(path, owner, host))) return undefined
  return typeof owner === 'string' ? unknownHolder : toHolder(owner)
}

/** True where there is a lock whose owner is known to be dead. */
export async function isAbandoned(path: string, host: LockHost): Promise<boolean> {
  const owner = await readOwner(host.fs, path)
  return owner !== undefined && isLeft(path, owner, host)
}

async function writeOwner(fs: FileSystem, path: string, owner: LogOwner): Promise<void> {
  const file = await fs.open(path, 'create')
  try {
    await writeAll(file, Buffer.from(`${JSON.stringify(owner)}\n`))
    // A lock whose text is lost in a power failure would name nobody, and so nobody could be known to be dead.
    await file.sync()
  } finally {
    await file.close()
  }
}

async function tryLink(fs: FileSystem, claim: string, path: string, owner: LogOwner): Promise<boolean> {
  try {
    await fs.link(claim, path).catch(async (error: unknown) => {
      if (!hasNoLinks(error)) throw error
      // A crash leaves a lock that names nobody, but for the claim, which therefore must be there first.
      await fs.syncFolder(dirname(path))
      await writeOwner(fs, path, owner)
    })
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
}

/** False where the lock went away or another claim is in the way, so that it may be tried again. */
async function tryReplace(
  path: string,
  claim: string,
  host: LockHost,
  options: LockOptions,
): Promise<boolean> {
  const { fs } = host
  const owner = await readOwner(fs, path)
  if (owner === undefined) return false
  const mayTake = options.from !== undefined && options.from.nonce === nonceOf(owner)
  if (!mayTake && !(await isLeft(path, owner, host, claim))) throw heldError(path, owner)
  for (const other of await claimsBeside(path, fs)) {
    if (other === claim) continue
    const claimant = await readOwner(fs, other)
    // One that cannot be read yet belongs to somebody who has not looked yet, and will see our claim or lock.
    if (claimant === undefined || typeof claimant === 'string' || isDead(claimant, host)) continue
    return false
  }
  const now = await readOwner(fs, path)
  if (now === undefined || nonceOf(now) !== nonceOf(owner)) return false
  await fs.rename(claim, path)
  return true
}

/**
 * Whether nobody has this lock any more. One that somebody began to write and did not end was left where all that lay
 * a claim to it are dead, and there are such.
 */
async function isLeft(
  path: string,
  owner: LogOwner | Nobody,
  host: LockHost,
  ownClaim?: string,
): Promise<boolean> {
  if (owner !== 'unfinished') return isDead(owner, host)
  const others = (await claimsBeside(path, host.fs)).filter(claim => claim !== ownClaim)
  const claimants = await Promise.all(others.map(claim => readOwner(host.fs, claim)))
  const named = claimants.filter(claimant => typeof claimant === 'object')
  return named.length > 0 && named.every(claimant => isDead(claimant, host))
}

function isDead(owner: LogOwner | Nobody | undefined, { processes }: LockHost): boolean {
  if (owner === undefined || typeof owner === 'string') return false
  return givenBack.has(owner.nonce) || processes.isDead(owner)
}

function toLock(path: string, owner: LogOwner, host: LockHost): Lock {
  /** The file as it was when it was last seen to be ours; to look at it again costs a tenth of reading it. */
  let seen: string | undefined
  return {
    async check() {
      const mark = await markOf(host.fs, path)
      if (mark !== undefined && mark === seen) return
      const now = await readOwner(host.fs, path)
      if (now === undefined)
        throw new PersistenceError('LOCK_LOST', `the lock of this session is gone: ${path}`)
      if (nonceOf(now) !== owner.nonce) throw heldError(path, now)
      seen = mark
    },
    async release() {
      givenBack.add(owner.nonce)
      const now = await readOwner(host.fs, path)
      if (now !== undefined && nonceOf(now) === owner.nonce) await host.fs.unlink(path).catch(ignoreMissing)
      givenBack.delete(owner.nonce)
    },
  }
}

/** Another for each file that was ever there, and for each time it was written. */
async function markOf(fs: FileSystem, path: string): Promise<string | undefined> {
  const stat = await unlessMissing(fs.stat(path))
  return stat && `${stat.identity} ${stat.size} ${stat.mtimeMs}`
}

async function removeDeadClaims(path: string, host: LockHost): Promise<void> {
  for (const claim of await claimsBeside(path, host.fs)) {
    const owner = await readOwner(host.fs, claim)
    if (typeof owner === 'string' || isDead(owner, host)) await host.fs.unlink(claim).catch(() => undefined)
  }
}

async function isThere(fs: FileSystem, path: string): Promise<boolean> {
  return (await unlessMissing(fs.stat(path))) !== undefined
}

async function claimsBeside(path: string, fs: FileSystem): Promise<readonly string[]> {
  const prefix = `${basename(path)}.`
  const names = await fs.readdir(dirname(path))
  return names.filter(name => name.startsWith(prefix)).map(name => join(dirname(path), name))
}

async function readOwner(fs: FileSystem, path: string): Promise<LogOwner | Nobody | undefined> {
  const bytes = await unlessMissing(fs.read(path)).catch(unreadableLock)
  if (bytes === undefined) return undefined
  if (typeof bytes === 'string') return bytes
  const text = bytes.toString('utf8')
  return parseOwner(text) ?? (parseJson(text) === undefined ? 'unfinished' : 'unreadable')
}

/** What is there, and can never be read, keeps writers out and no reader. */
function unreadableLock(error: unknown): Nobody {
  if (isNoFile(error) || errnoOf(error) === 'EACCES') return 'unreadable'
  throw error
}

function nonceOf(owner: LogOwner | Nobody): string {
  return typeof owner === 'string' ? unknownHolder.nonce : owner.nonce
}

function heldError(path: string, owner: LogOwner | Nobody | undefined): PersistenceError {
  return heldBy(owner === undefined || typeof owner === 'string' ? unknownHolder : toHolder(owner), path)
}

function ignoreMissing(error: unknown): void {
  if (errnoOf(error) !== 'ENOENT') throw error
}
