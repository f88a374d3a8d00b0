import { join, resolve } from 'node:path'
import { isWithin } from '../../kernel/index.ts'
import { readTextNow } from './env.ts'
import { readGitConfig } from './git-config.ts'
import { gitFoldersOf, isFolder, isThere } from './git-folder.ts'
import { nestedRepositories } from './nested.ts'
import { protectedNames } from './protected.ts'

/**
 * Paths of `root` that stay as they are, whether or not something is there: what its tools run or read their orders
 * from. Of repositories further down those are known that it names as submodules, or that its index records.
 */
export function protectedIn(root: string): string[] {
  const paths = [
    ...protectedNames.map(name => join(root, name)),
    ...gitPaths(root, join(root, '.git')),
    ...submoduleLinks(root),
    ...nestedRepositories(root).flatMap(folder => gitPaths(folder, join(folder, '.git'))),
  ]
  return [...new Set(paths)].filter(path => path !== root && isWithin(root, path))
}

function gitPaths(workTree: string, git: string): string[] {
  // Without a head it is no repository yet, and who could make one of it could make all of it.
  if (isFolder(git)) return isThere(join(git, 'HEAD')) ? folderPaths(workTree, git) : [git]
  return [git, ...gitFoldersOf(git).flatMap(folder => folderPaths(workTree, folder))]
}

/** Of the folder that git keeps a repository in. */
function folderPaths(workTree: string, folder: string): string[] {
  const config = join(folder, 'config')
  const { hooksPath, includes, hasWorktreeFile } = readGitConfig(readTextNow(config) ?? '')
  const byName = (name: string): string => join(folder, name)
  return [
    ...['hooks', 'config', 'commondir'].map(byName),
    ...['modules', 'worktrees'].map(byName).filter(isFolder),
    ...(hasWorktreeFile ? [byName('config.worktree')] : []),
    ...includes.map(path => resolve(folder, path)),
    // Scripts of husky lie beside the folder that it names.
    ...(hooksPath === undefined ? [] : [resolve(workTree, hooksPath.replace(/\/_\/?$/, ''))]),
  ]
}

function submoduleLinks(root: string): string[] {
  const text = readTextNow(join(root, '.gitmodules')) ?? ''
  return [...text.matchAll(/^\s*path\s*=\s*(.+)$/gm)]
    .map(([, path = '']) => resolve(root, path.trim(), '.git'))
    .filter(isThere)
}
