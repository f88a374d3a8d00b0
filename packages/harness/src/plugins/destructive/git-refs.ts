import { readFile, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'

/** Where a repository keeps what it knows; the folder of a worktree has only its own HEAD. */
export interface GitFolder {
  /** The working tree. */
  readonly root: string
  readonly own: string
  readonly common: string
}

/** The repository that `folder` lies in, found as git finds it. Nothing is run. */
export async function gitFolderOf(folder: string): Promise<GitFolder | undefined> {
  for (let at = folder; ; at = dirname(at)) {
    const own = await gitFolderAt(at)
    if (own !== undefined) {
      const common = (await textOf(join(own, 'commondir')))?.trim()
      return { root: at, own, common: common === undefined ? own : resolve(own, common) }
    }
    if (dirname(at) === at) return undefined
  }
}

async function gitFolderAt(folder: string): Promise<string | undefined> {
  const path = join(folder, '.git')
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined) return undefined
  if (stats.isDirectory()) return path
  const target = /^gitdir: (.+?)\s*$/.exec((await textOf(path)) ?? '')?.[1]
  if (target === undefined) return undefined
  return isAbsolute(target) ? target : join(folder, target)
}

/** The commits that names point to; those that point nowhere are not in it. Of the stash, all that it holds. */
export async function readRefs(
  git: GitFolder,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const name of names) {
    if (name === stash) for (const id of await stashesOf(git)) found.set(`${stash} ${id}`, id)
    const id = name === stash ? undefined : await commitOf(git, name)
    if (id !== undefined) found.set(name, id)
  }
  return found
}

export const stash = 'refs/stash'
const commitId = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
const deepest = 5

async function commitOf(git: GitFolder, name: string, depth = 0): Promise<string | undefined> {
  if (depth > deepest || name.split('/').includes('..')) return undefined
  const folder = name.startsWith('refs/') ? git.common : git.own
  const text = (await textOf(join(folder, name)))?.trim()
  if (text !== undefined && commitId.test(text)) return text
  const target = /^ref: (\S+)$/.exec(text ?? '')?.[1]
  if (target !== undefined) return await commitOf(git, target, depth + 1)
  return await packedCommitOf(git, name)
}

async function packedCommitOf({ common }: GitFolder, name: string): Promise<string | undefined> {
  const lines = ((await textOf(join(common, 'packed-refs'))) ?? '').split('\n')
  const line = lines.find(each => each.endsWith(` ${name}`) && !each.startsWith('#'))
  const id = line?.slice(0, line.indexOf(' '))
  return id !== undefined && commitId.test(id) ? id : undefined
}

async function stashesOf({ common }: GitFolder): Promise<readonly string[]> {
  const lines = ((await textOf(join(common, 'logs', stash))) ?? '').split('\n')
  return lines.map(line => line.split(' ')[1] ?? '').filter(id => commitId.test(id))
}

/** Undefined where there is no such plain file. */
async function textOf(path: string): Promise<string | undefined> {
  return await readFile(path, 'utf8').catch(() => undefined)
}
