import { constants } from 'node:fs'
import type { Dirent } from 'node:fs'
import { platform } from 'node:os'
import { basename, dirname } from 'node:path'
import { close, mkdir, open, pathOfOpen, readdir, realpath } from './calls.ts'
import { FsError } from './errors.ts'
import { hasCode } from './failure.ts'

/** A folder held open. */
export interface Anchor {
  /** Names below this lead into the folder, whatever its own name leads to by now. */
  readonly at: string
  /** Fails with FS_STALE_VERSION where the folder is not held and its name leads elsewhere by now. */
  assertSame(): Promise<void>
  close(): Promise<void>
}

/** Linux's flag for a handle that only names something; it needs no right to list the folder. */
const pathOnly = 0o10000000
const flags = pathOnly | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0)

/**
 * Opens the folder whose real path is `path`, made where it is missing. Fails with FS_STALE_VERSION where a link or
 * another folder took its place since the path was found, and then has made and changed nothing elsewhere.
 *
 * Systems without /proc have the folder's name alone: it is looked at again right before the file is put in place, and a
 * swap between that look and the next call goes unnoticed.
 */
export async function anchorFolder(path: string): Promise<Anchor> {
  const file = platform() === 'linux' ? await openOrMake(path) : undefined
  if (file === undefined) return await anchorByName(path)
  const now = pathOfOpen(file)
  if (now !== undefined && isSamePath(now, path))
    return { at: `/proc/self/fd/${file}`, assertSame: () => Promise.resolve(), close: () => close(file) }
  await close(file)
  if (now === undefined) return await anchorByName(path)
  throw leadsElsewhere(path)
}

/** What a real path must lead to that was opened as `path`. A file system that knows no case may tell another spelling. */
export function isSamePath(now: string, path: string): boolean {
  return now === path || now.toLowerCase() === path.toLowerCase()
}

export function leadsElsewhere(path: string): FsError {
  return new FsError('FS_STALE_VERSION', `${path} leads elsewhere since it was found`)
}

async function openOrMake(path: string): Promise<number> {
  const found = await openFolder(path)
  if (found !== undefined) return found
  const parent = await anchorFolder(dirname(path))
  try {
    const below = `${parent.at}/${basename(path)}`
    await mkdir(below, {}).catch(unlessThere)
    return await open(below, flags, 0)
  } finally {
    await parent.close()
  }
}

/** Undefined where it is missing. */
async function openFolder(path: string): Promise<number | undefined> {
  try {
    return await open(path, flags, 0)
  } catch (error) {
    if (hasCode(error, 'ENOENT') && dirname(path) !== path) return undefined
    if (hasCode(error, 'ENOTDIR'))
      throw new FsError('FS_STALE_VERSION', `${path} is no folder since it was found`, { cause: error })
    throw error
  }
}

function unlessThere(error: unknown): void {
  if (!hasCode(error, 'EEXIST')) throw error
}

async function anchorByName(path: string): Promise<Anchor> {
  await mkdir(path, { recursive: true })
  const assertSame = async (): Promise<void> => {
    if (!isSamePath(await realpath(path), path)) throw leadsElsewhere(path)
  }
  return { at: path, assertSame, close: () => Promise.resolve() }
}

/** The entries of the folder whose real path is `path`; FS_STALE_VERSION where that leads elsewhere by now. */
export async function readHeldFolder(path: string): Promise<Dirent[]> {
  const file = await open(path, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0), 0)
  try {
    const now = pathOfOpen(file)
    if (now === undefined) return await readdir(path)
    if (!isSamePath(now, path)) throw leadsElsewhere(path)
    return await readdir(`/proc/self/fd/${file}`)
  } finally {
    await close(file)
  }
}
