import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isWithin } from '../../kernel/index.ts'
import type { Mount, World } from './bubblewrap.ts'
import { canonical } from './canonical.ts'
import { runtimeFile } from './env.ts'
import { firstMissing } from './placeholders.ts'
import type { Placeholders } from './placeholders.ts'
import type { ConfineOptions, SandboxExecutionPolicy } from './service.ts'
import { settledSockets } from './sockets.ts'

/** Of what is hidden with /run, what programs and the names of hosts are found by. */
const keptOfRun = ['/run/current-system', '/run/opengl-driver', '/run/wrappers']

interface WorldOptions extends ConfineOptions {
  /** Set for what runs in it, over what it would have. */
  readonly variables?: Readonly<Record<string, string>>
  /** Of those who run something in it. */
  readonly uid?: number | undefined
}

export interface PreparedWorld extends World {
  /** False where a protected name is a link, which cannot be held in its place. */
  readonly isWhole: boolean
}

/** What processes under `policy` are to see. Takes protected names that are free. */
export function prepareWorld(
  policy: SandboxExecutionPolicy,
  placeholders: Placeholders,
  { terminal = false, folder, variables = {}, uid }: WorldOptions = {},
): PreparedWorld {
  const { network, tempFolder, unreadablePaths, readablePaths } = policy
  const temp = canonical('/tmp')
  const kept = policy.writableRoots.flatMap(root => keep(policy, root, placeholders))
  const mounts: Mount[] = [
    ...['/run', '/var/run'].filter(isRealFolder).map((path): Mount => ({ path, kind: 'empty' })),
    ...keptForNetwork(network).map((path): Mount => ({ path, kind: 'keep' })),
    ...workspaceMounts(policy, temp),
    tempFolder === undefined
      ? { path: temp, kind: 'empty' }
      : { path: temp, kind: 'write', from: tempFolder },
    ...readablePaths.map((path): Mount => ({ path, kind: 'keep' })),
    ...runtimeMounts(temp),
    ...policy.writableRoots.map((path): Mount => ({ path, kind: 'write' })),
    ...kept.flatMap(({ mounts: own }) => own),
    ...unreadablePaths.filter(path => existsSync(path) && !policy.writableRoots.includes(path)).map(hide),
    ...(folder === undefined ? [] : [{ path: folder.at, kind: 'keep', from: folder.from } as const]),
  ]
  return {
    mounts: [...mounts, ...hideSockets(policy, mounts, uid)],
    network,
    variables: { ...variables, TMPDIR: tempFolder ?? temp },
    terminal,
    isWhole: kept.every(({ isWhole }) => isWhole),
  }
}

/** The program that runs this one runs programs of models too, also where the temporary folder would hide it. */
function runtimeMounts(temp: string): Mount[] {
  const path = canonical(runtimeFile())
  return isWithin(temp, path) ? [{ path, kind: 'keep' }] : []
}

/** Mounts over the sockets of other programs: no mount that is read-only keeps anybody from connecting. */
function hideSockets(
  { workspaceRoot, writableRoots, tempFolder }: SandboxExecutionPolicy,
  mounts: readonly Mount[],
  uid: number | undefined,
): Mount[] {
  const own = [...writableRoots.filter(root => root === workspaceRoot), tempFolder ?? []].flat()
  return settledSockets({ uid })
    .filter(path => isShown(path, mounts) && !own.some(folder => isWithin(folder, path)))
    .map(path => ({ path, kind: 'hide-file' }))
}

/** Whether what is at `path` is there in a world of `mounts` as well. */
function isShown(path: string, mounts: readonly Mount[]): boolean {
  if (['/dev', '/proc'].some(folder => isWithin(folder, path))) return false
  const root: Mount = { path: '/', kind: 'keep' }
  const around = mounts.filter(mount => isWithin(mount.path, path))
  const { kind, from } = around.reduce((a, b) => (b.path.length >= a.path.length ? b : a), root)
  return from === undefined && (kind === 'keep' || kind === 'write')
}

/** The workspace where it may be looked at and not changed, as far as something would hide it. */
function workspaceMounts(
  { workspaceRoot, writableRoots, unreadablePaths }: SandboxExecutionPolicy,
  temp: string,
): Mount[] {
  if (writableRoots.includes(workspaceRoot)) return []
  const hiding = [temp, '/run', ...unreadablePaths]
  const isHidden = hiding.some(path => path !== workspaceRoot && isWithin(path, workspaceRoot))
  return isHidden ? [{ path: workspaceRoot, kind: 'keep' }] : []
}

/** Mounts that hold protected paths, and the folders that lead to them: one that holds a mount cannot be moved away. */
function keep(
  { protectedPaths }: SandboxExecutionPolicy,
  root: string,
  placeholders: Placeholders,
): { mounts: Mount[]; isWhole: boolean }[] {
  return protectedPaths
    .filter(path => path !== root && isWithin(root, path))
    .filter(path => !protectedPaths.some(other => other !== path && isWithin(other, path)))
    .map(path => {
      const taken = firstMissing(path, root)
      const found = placeholders.take(taken)
      if (found === undefined) return { mounts: [], isWhole: true }
      const real = canonical(taken)
      const way = foldersBetween(root, real).map((folder): Mount => ({ path: folder, kind: 'write' }))
      const mounts: Mount[] =
        isWithin(root, real) && real !== root && existsSync(real)
          ? [...way, { path: real, kind: 'keep' }]
          : []
      return { mounts, isWhole: found !== 'link' && real === taken }
    })
}

function foldersBetween(root: string, path: string): string[] {
  const folders: string[] = []
  for (let at = dirname(path); at !== root && isWithin(root, at); at = dirname(at)) folders.unshift(at)
  return folders
}

function hide(path: string): Mount {
  return { path, kind: statSync(path).isDirectory() ? 'hide' : 'hide-file' }
}

function keptForNetwork(network: boolean): string[] {
  const paths = keptOfRun.filter(path => existsSync(path))
  const names = canonical('/etc/resolv.conf')
  return network && names.startsWith('/run/') && existsSync(names) ? [...paths, names] : paths
}

/** A link leads to what is dealt with under its own name. */
function isRealFolder(path: string): boolean {
  return existsSync(path) && canonical(path) === path
}
