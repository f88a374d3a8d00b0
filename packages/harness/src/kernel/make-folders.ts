import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

const ownersAlone = 0o700

/**
 * Makes `path` and the folders above it where they are missing, and gives the topmost that was made.
 *
 * The recursive `mkdir` of Node never returns where a folder is there and nothing can be made in it for want of the
 * folder itself, as below /proc or where the current folder is gone.
 */
export function makeFolders(path: string, mode = ownersAlone): string | undefined {
  if (make(path, mode)) return path
  if (isFolder(path)) return undefined
  const first = makeFolders(dirname(path), mode)
  const isMade = make(path, mode)
  // Now its parent is there, so that whatever is missing is no folder that could be made.
  if (!isMade && !isFolder(path)) throw errno('ENOENT', 'no such file or directory', path)
  return first ?? (isMade ? path : undefined)
}

/** False where it is there already, or its parent is not. */
function make(path: string, mode: number): boolean {
  try {
    mkdirSync(path, { mode })
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && dirname(path) !== path) return false
    // Some systems say of a folder that is there that it cannot be written.
    if (isFolder(path)) return false
    throw code === 'EEXIST' ? errno('ENOTDIR', 'not a directory', path) : error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function errno(code: string, reason: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${reason}, mkdir '${path}'`), { code, path })
}
