import { randomUUID } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { anchorFolder } from './anchor.ts'
import type { Anchor } from './anchor.ts'
import { chmod, chown, close, fstat, link, lstat, open, rename, sync, unlink, writeAll } from './calls.ts'
import { FsError } from './errors.ts'
import { hasCode } from './failure.ts'

export interface Publication {
  /** Real, but for a last part that may not be there. */
  readonly path: string
  readonly displayPath: string
  readonly content: Uint8Array
  /** The file to replace; its mode is kept, and its owner where the system allows it. Undefined = make a new one. */
  readonly replaces: BigIntStats | undefined
  readonly maker: { readonly pid: number; readonly umask: number }
  /** A new file may take the place of one that somebody else made meanwhile. */
  readonly mayOverwrite: boolean
  /** Runs when all is written and nothing is published; a throw leaves everything as it was. */
  readonly confirm: () => Promise<void>
}

/**
 * Puts the content in place whole or not at all: it is written and synced beside the target, then moved. All of that
 * happens in one folder that is held open, so nothing lands where a link was put meanwhile.
 *
 * A replaced file gets a new inode: further hard links keep the old content, and access lists and extended attributes
 * are lost.
 */
export async function publish(publication: Publication): Promise<void> {
  const { path } = publication
  const anchor = await anchorFolder(dirname(path))
  try {
    await publishIn(anchor, { ...publication, path: join(anchor.at, basename(path)) })
  } finally {
    await anchor.close()
  }
}

async function publishIn(anchor: Anchor, publication: Publication): Promise<void> {
  const { path, maker } = publication
  // The name itself may be as long as names can be.
  const label = basename(path).slice(0, 32)
  // A file and no folder: below a folder a link could be put in the way.
  const staged = join(anchor.at, `.${label}.${maker.pid}.${randomUUID()}.tmp`)
  let isMoved = false
  try {
    await stage(staged, publication)
    await publication.confirm()
    await anchor.assertSame()
    if (publication.replaces === undefined) isMoved = await publishNew(staged, publication)
    else {
      await rename(staged, path)
      isMoved = true
    }
    await syncFolder(anchor.at)
  } finally {
    // What is published stays published, even if this file cannot be taken away.
    if (!isMoved) await unlink(staged).catch(() => {})
  }
}

async function stage(staged: string, { content, replaces, maker }: Publication): Promise<void> {
  const file = await open(staged, 'wx', 0o600)
  try {
    await writeAll(file, content)
    await chmod(file, replaces === undefined ? 0o666 & ~maker.umask : await takeOwner(file, replaces))
    await sync(file)
  } finally {
    await close(file)
  }
}

/** Gives `file` the owner of the one it replaces, and says what mode it may have then. */
async function takeOwner(file: number, replaces: BigIntStats): Promise<number> {
  const mode = Number(replaces.mode) & 0o7777
  const [uid, gid] = [Number(replaces.uid), Number(replaces.gid)]
  const made = await fstat(file)
  if (made.uid === uid && made.gid === gid) return mode
  try {
    await chown(file, uid, gid)
    return mode
  } catch {
    // A program of another owner must not run as this one.
    return mode & 0o777
  }
}

/**
 * `link` refuses to take the place of anything, even of a link that leads nowhere. True where the staged name itself was
 * moved.
 */
async function publishNew(staged: string, publication: Publication): Promise<boolean> {
  const { path, displayPath, mayOverwrite } = publication
  try {
    await link(staged, path)
    return false
  } catch (error) {
    if (hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'))
      return await publishWithoutLinks(staged, path)
    if (!hasCode(error, 'EEXIST')) throw error
    const found = await lstat(path)
    if (!mayOverwrite && (found.isFile() || found.isSymbolicLink()))
      throw new FsError('FS_NOT_OBSERVED', `${displayPath} exists and has not been read`, { cause: error })
    if (!found.isFile())
      throw new FsError('FS_NOT_REGULAR_FILE', `${displayPath} is not a file`, { cause: error })
    await rename(staged, path)
    return true
  }
}

/** Where a file system has no hard links: takes the name first, empty, and then fills it. */
async function publishWithoutLinks(staged: string, path: string): Promise<true> {
  await close(await open(path, 'wx', 0o600))
  await rename(staged, path)
  return true
}

/** Some systems cannot sync a folder; there the move is as durable as they make it. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r', 0).catch(() => undefined)
  if (handle === undefined) return
  await sync(handle).catch(() => {})
  await close(handle)
}
