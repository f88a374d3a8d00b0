import { lstatSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readTextNow } from './env.ts'
import { readGitConfig } from './git-config.ts'
import { protectedNames } from './protected.ts'
import { isWithin } from './refusal.ts'

/**
 * Paths of `root` that stay as they are, whether or not something is there: what its tools run or read their orders
 * from. Of repositories further down only submodules are known.
 */
export function protectedIn(root: string): string[] {
  const paths = [
    ...protectedNames.map(name => join(root, name)),
    ...gitPaths(root, join(root, '.git')),
    ...submoduleLinks(root),
  ]
  return [...new Set(paths)].filter(path => path !== root && isWithin(root, path))
}

function gitPaths(root: string, git: string): string[] {
  // Without a head it is no repository yet, and who could make one of it could make all of it.
  if (isFolder(git)) return isThere(join(git, 'HEAD')) ? folderPaths(root, git) : [git]
  const [, linked] = /^gitdir:\s*(.+)$/m.exec(readTextNow(git) ?? '') ?? []
  if (linked === undefined) return [git]
  const folder = resolve(dirname(git), linked.trim())
  const common = readTextNow(join(folder, 'commondir'))?.trim()
  const folders = common === undefined ? [folder] : [folder, resolve(folder, common)]
  return [git, ...folders.flatMap(each => folderPaths(root, each))]
}

/** Of the folder that git keeps a repository in. */
function folderPaths(root: string, folder: string): string[] {
  const config = join(folder, 'config')
  const { hooksPath, includes, hasWorktreeFile } = readGitConfig(readTextNow(config) ?? '')
  const byName = (name: string): string => join(folder, name)
  return [
    ...['hooks', 'config', 'commondir'].map(byName),
    ...['modules', 'worktrees'].map(byName).filter(isFolder),
    ...(hasWorktreeFile ? [byName('config.worktree')] : []),
    ...includes.map(path => resolve(folder, path)),
    // Scripts of husky lie beside the folder that it names.
    ...(hooksPath === undefined ? [] : [resolve(root, hooksPath.replace(/\/_\/?$/, ''))]),
  ]
}

function submoduleLinks(root: string): string[] {
  const text = readTextNow(join(root, '.gitmodules')) ?? ''
  return [...text.matchAll(/^\s*path\s*=\s*(.+)$/gm)]
    .map(([, path = '']) => resolve(root, path.trim(), '.git'))
    .filter(isThere)
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
