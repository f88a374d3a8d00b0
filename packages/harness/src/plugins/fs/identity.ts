import type { BigIntStats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { lstat, readdir, realpath, stat } from './calls.ts'
import { FsError } from './errors.ts'
import { hasCode, toFsError } from './failure.ts'
import type { FsFileType, FsInfo, FsTarget, FsTargetKey, FsVersion } from './service.ts'

/**
 * The target of `path`. Its key is the real path; where nothing is yet, the real path of the deepest folder that is
 * there, and the rest. So it stays the same when the file is created, and whatever links lead to it.
 */
export async function identify(path: string, cwd: string): Promise<FsTarget> {
  if (path.trim() === '' || path.includes('\0')) throw new FsError('FS_NOT_FOUND', `no path: "${path}"`)
  const base = `${cwd}/${path}`.split(/[\\/]/).includes('..') ? await realFolder(cwd) : cwd
  const displayPath = resolve(base, path)
  try {
    return { targetKey: (await realKey(displayPath)) as FsTargetKey, displayPath }
  } catch (error) {
    if (hasCode(error, 'ENOTDIR'))
      throw new FsError('FS_NOT_FOUND', `${displayPath} leads through a file`, { cause: error })
    throw toFsError(error, `find ${displayPath}`)
  }
}

async function realFolder(cwd: string): Promise<string> {
  try {
    return await realpath(cwd)
  } catch {
    return cwd
  }
}

async function realKey(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const parent = dirname(path)
    if (!hasCode(error, 'ENOENT') || parent === path) throw error
    const folder = await realKey(parent)
    const other = await otherSpelling(folder, basename(path))
    return other === undefined ? join(folder, basename(path)) : realKey(join(folder, other))
  }
}

/** The one entry whose name is made of other code points but reads the same: é as one, or as e with an accent. */
async function otherSpelling(folder: string, name: string): Promise<string | undefined> {
  // Plain ASCII has one spelling.
  if (/^[\0-\x7f]*$/.test(name)) return undefined
  const entries = await readdir(folder).catch(() => [])
  const names = entries.map(entry => entry.name)
  const same = names.filter(other => other !== name && other.normalize() === name.normalize())
  return same.length === 1 ? same[0] : undefined
}

export async function lookAt(path: string): Promise<BigIntStats | undefined> {
  return absentAsUndefined(stat(path), path)
}

export async function lookAtLink(path: string): Promise<BigIntStats | undefined> {
  return absentAsUndefined(lstat(path), path)
}

async function absentAsUndefined(
  looking: Promise<BigIntStats>,
  path: string,
): Promise<BigIntStats | undefined> {
  try {
    return await looking
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw toFsError(error, `look at ${path}`)
  }
}

/** A rewrite of equal size with its old time put back still changes the version, through ctime. */
export function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): FsVersion {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}` as FsVersion
}

export function infoOf(stats: BigIntStats): FsInfo {
  const version = versionOf(stats)
  const type = typeOf(stats)
  return type === 'file' ? { version, type, size: Number(stats.size) } : { version, type }
}

function typeOf(stats: BigIntStats): FsFileType {
  if (stats.isFile()) return 'file'
  return stats.isDirectory() ? 'directory' : 'other'
}
