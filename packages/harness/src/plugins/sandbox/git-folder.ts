import { lstatSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { readTextNow } from './env.ts'

/** The folders that `git`, a folder or a file that names one, keeps its repository in, its own first; none where it is neither. */
export function gitFoldersOf(git: string): readonly string[] {
  if (isFolder(git)) return [git]
  const [, linked] = /^gitdir:\s*(.+)$/m.exec(readTextNow(git) ?? '') ?? []
  if (linked === undefined) return []
  const folder = resolve(dirname(git), linked.trim())
  const common = readTextNow(resolve(folder, 'commondir'))?.trim()
  return common === undefined ? [folder] : [folder, resolve(folder, common)]
}

export function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
