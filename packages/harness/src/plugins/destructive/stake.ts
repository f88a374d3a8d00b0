import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isWithin } from '../../kernel/index.ts'
import type { Destruction } from '../shell-command/index.ts'
import { gitFolderOf } from './git-refs.ts'
import type { GitFolder } from './git-refs.ts'

/** What a command would destroy of what is there. Paths are absolute, links on the way resolved. */
export interface Stake {
  /** The workspace. */
  readonly root: string
  /** In the workspace, and named by the command. */
  readonly named: readonly string[]
  /** Files in the workspace are meant, named or not. */
  readonly isInside: boolean
  readonly outside: readonly string[]
  /** Repositories of git that would go with their history. */
  readonly histories: readonly string[]
  /** Other files may be meant, which only the shell can know. */
  readonly isOpen: boolean
  readonly refs: readonly { readonly git: GitFolder; readonly names: readonly string[] }[]
  /** What no repository here can bring back. */
  readonly lost: readonly ('remote' | 'objects')[]
}

interface Builder {
  readonly named: Set<string>
  isInside: boolean
  readonly outside: Set<string>
  readonly histories: Set<string>
  isOpen: boolean
  readonly refs: { readonly git: GitFolder; readonly names: readonly string[] }[]
  readonly lost: Set<'remote' | 'objects'>
}

/** Undefined where nothing is at stake. */
export async function stakeOf(
  destructions: readonly Destruction[],
  workspace: string,
): Promise<Stake | undefined> {
  const root = await realpath(workspace).catch(() => workspace)
  const built: Builder = {
    named: new Set(),
    isInside: false,
    outside: new Set(),
    histories: new Set(),
    isOpen: false,
    refs: [],
    lost: new Set(),
  }
  for (const destruction of destructions) await add(built, destruction, root)
  const { named, outside, histories, lost, ...rest } = built
  const stake = {
    root,
    named: [...named],
    outside: [...outside],
    histories: [...histories],
    lost: [...lost],
    ...rest,
  }
  return isNothing(stake) ? undefined : stake
}

/** What is left of it where nothing outside of the workspace can be reached. */
export function withinWorkspace(stake: Stake): Stake | undefined {
  const { root, isInside, isOpen, histories } = stake
  const own = {
    ...stake,
    isInside: isInside || isOpen,
    isOpen: false,
    outside: [],
    histories: histories.filter(path => isWithin(root, path)),
  }
  return isNothing(own) ? undefined : own
}

function isNothing({ isInside, isOpen, outside, histories, refs, lost }: Stake): boolean {
  return !isInside && !isOpen && outside.length + histories.length + refs.length + lost.length === 0
}

async function add(built: Builder, destruction: Destruction, root: string): Promise<void> {
  const { kind, repository, refs = [] } = destruction
  const git = repository === undefined ? undefined : await gitFolderOf(repository)
  switch (kind) {
    case 'remote':
    case 'objects':
      if (git !== undefined) built.lost.add(kind)
      return
    case 'refs':
      if (git !== undefined) built.refs.push({ git, names: refs })
      return
    default:
      await addFiles(built, destruction, { root, repository: git?.root })
  }
}

async function addFiles(
  built: Builder,
  { kind, paths, isDeep, isOpen }: Destruction,
  { root, repository }: { readonly root: string; readonly repository: string | undefined },
): Promise<void> {
  if (isOpen) built.isOpen = true
  if (repository !== undefined) place(built, await realOf(repository), root)
  for (const path of paths) {
    const isPattern = path.endsWith('/*')
    const named = isPattern ? dirname(path) : path
    const target = kind === 'overwrite' ? await realpath(named).catch(() => undefined) : await realOf(named)
    if (target === undefined || !(await isAtStake(target, kind, isDeep))) continue
    place(built, target, root)
    if (isWithin(root, target)) built.named.add(target)
    if (kind === 'delete' && !isPattern)
      for (const each of await historiesIn(target)) built.histories.add(each)
  }
}

/** What lies above the workspace holds it. */
function place(built: Builder, path: string, root: string): void {
  if (isWithin(root, path) || isWithin(path, root)) built.isInside = true
  if (!isWithin(root, path)) built.outside.add(path)
}

/** Links on the way are resolved, a link itself is not: it is what would go. */
async function realOf(path: string): Promise<string> {
  const folder = await realpath(dirname(path)).catch(() => undefined)
  return folder === undefined ? path : join(folder, basename(path))
}

async function isAtStake(path: string, kind: Destruction['kind'], isDeep: boolean): Promise<boolean> {
  if (kind !== 'overwrite') return (await lstat(path).catch(() => undefined)) !== undefined
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined) return false
  if (stats.isDirectory()) return isDeep && (await namesIn(path)).length > 0
  return stats.isBlockDevice() || (stats.isFile() && stats.size > 0)
}

const searchedEntries = 5000

/** Folders `.git` that are `path`, hold it, or lie below it, as far as a short search finds them. */
async function historiesIn(path: string): Promise<readonly string[]> {
  const parts = path.split('/')
  const at = parts.indexOf('.git')
  if (at >= 0) return [parts.slice(0, at + 1).join('/')]
  const found: string[] = []
  const waiting = [path]
  let seen = 0
  for (
    let folder = waiting.shift();
    folder !== undefined && seen < searchedEntries;
    folder = waiting.shift()
  ) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    seen += entries.length
    for (const entry of entries) {
      if (entry.name === '.git') found.push(join(folder, entry.name))
      else if (entry.isDirectory()) waiting.push(join(folder, entry.name))
    }
  }
  return found
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return await readdir(folder).catch(() => [])
}
