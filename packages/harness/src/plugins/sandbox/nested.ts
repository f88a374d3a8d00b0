import { accessSync, constants, lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readBytesNow, readTextNow } from './env.ts'
import { mayRunPrograms } from './git-config.ts'
import { gitFoldersOf, isThere } from './git-folder.ts'
import { readGitIndex } from './git-index.ts'

/** So many repositories are looked at of one workspace. */
const most = 1000

interface Known {
  /** Of the file as it was read. */
  readonly version: string
  readonly gitlinks: readonly string[]
}

const known = new Map<string, Known>()

/**
 * Folders below `root` that indexes of git record as repositories, and that have one: git goes into them without being
 * told to, and there obeys their configurations. Those further down included.
 */
export function nestedRepositories(root: string): readonly string[] {
  const found = new Set<string>()
  const open = [root]
  for (let folder = open.pop(); folder !== undefined && found.size < most; folder = open.pop()) {
    const nested = gitlinksOf(folder)
      .map(path => join(folder, path))
      .filter(path => !found.has(path) && isRepository(path))
    for (const path of nested) found.add(path)
    open.push(...nested)
  }
  return [...found]
}

/** Whether git may run a program because of what the repository of `folder` has in it. */
export function runsPrograms(folder: string): boolean {
  return gitFoldersOf(join(folder, '.git')).some(
    git =>
      isThere(join(git, 'config.worktree')) ||
      mayRunPrograms(readTextNow(join(git, 'config')) ?? '') ||
      hasHook(join(git, 'hooks')),
  )
}

function isRepository(folder: string): boolean {
  return lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true && isThere(join(folder, '.git'))
}

function gitlinksOf(folder: string): readonly string[] {
  const [git] = gitFoldersOf(join(folder, '.git'))
  if (git === undefined) return []
  const path = join(git, 'index')
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return []
  const version = [stats.dev, stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join()
  const last = known.get(path)
  if (last?.version === version) return last.gitlinks
  const gitlinks = readIndex(git, path)
  known.set(path, { version, gitlinks })
  return gitlinks
}

function readIndex(git: string, path: string): readonly string[] {
  const config = gitFoldersOf(git).map(folder => readTextNow(join(folder, 'config')) ?? '')
  const hashLength = config.some(text => /objectformat\s*=\s*"?sha256/i.test(text)) ? 32 : 20
  const { gitlinks, sharedHash } = readGitIndex(readBytesNow(path) ?? Buffer.alloc(0), hashLength)
  if (sharedHash === undefined) return gitlinks
  const shared = readBytesNow(join(git, `sharedindex.${sharedHash}`)) ?? Buffer.alloc(0)
  return [...new Set([...gitlinks, ...readGitIndex(shared, hashLength).gitlinks])]
}

function hasHook(folder: string): boolean {
  try {
    return readdirSync(folder).some(name => !name.endsWith('.sample') && isProgram(join(folder, name)))
  } catch {
    return false
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
