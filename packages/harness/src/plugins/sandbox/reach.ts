import { existsSync, statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { HarnessError, isWithin } from '../../kernel/index.ts'
import { canonical } from './canonical.ts'
import type { SandboxConfig } from './config.ts'
import type { Machine } from './env.ts'
import type { SandboxMode } from './events.ts'
import { protectedIn } from './protect.ts'
import { readableOfHome, secretPaths } from './secrets.ts'
import type { SandboxBounds, SandboxExecutionPolicy } from './service.ts'

export interface ReachRequest {
  readonly mode: SandboxMode
  /** Of the session; undefined where it has none. */
  readonly folder: string | undefined
  readonly tempFolder: string
  readonly config: SandboxConfig
  readonly bounds: readonly SandboxBounds[]
  readonly machine: Machine
}

const homeText = (root: string): string =>
  `${root} is a home folder or lies above one, and nothing there is written unasked; dsh should be started in a project folder`

type Reach = Omit<SandboxExecutionPolicy, 'mode' | 'network' | 'sessionId'>

/** The paths of a policy, as the machine's files are now. */
export function reachOf(request: ReachRequest): Reach {
  const { mode, folder, config, bounds, machine } = request
  const workspaceRoot = canonical(folder ?? startFolderOf(machine))
  const nothing = { writableRoots: [], protectedPaths: [], unreadablePaths: [], readablePaths: [] }
  if (mode === 'full-access') return { ...nothing, workspaceRoot, writableRoots: [workspaceRoot] }
  const named = (key: 'writable' | 'unreadable' | 'protect'): string[] =>
    bounds.flatMap(each => each[key] ?? []).flatMap(path => inFull(path, machine))
  const unreadable = [
    ...secretPaths(machine, config.env),
    ...(config.home === undefined ? [] : [config.home]),
  ]
  const looks = {
    unreadablePaths: there([...unreadable, ...named('unreadable')]),
    readablePaths:
      config.home === undefined ? [] : there(readableOfHome.map(name => join(config.home ?? '', name))),
  }
  if (mode === 'read-only') return { ...nothing, ...looks, workspaceRoot }
  const isHome = holdsHome(workspaceRoot, machine)
  const own = folder === undefined || isHome || isShared(workspaceRoot) ? [] : [workspaceRoot]
  const others = there(named('writable')).filter(root => !isShared(root))
  const { tempFolder } = request
  return {
    ...looks,
    workspaceRoot,
    writableRoots: [...new Set([...own, ...others, tempFolder])],
    ...(isHome && !others.includes(workspaceRoot) && { noWorkspace: homeText(workspaceRoot) }),
    protectedPaths: [
      ...own.flatMap(root => ownProtected(root, named('protect'))),
      ...others.flatMap(protectedIn).filter(path => existsSync(path)),
    ],
    tempFolder,
  }
}

/** Nothing where there is no home for it. */
function inFull(path: string, { userHome }: Machine): string[] {
  if (!/^~(?=\/|$)/.test(path)) return [path]
  return userHome === undefined ? [] : [userHome + path.slice(1)]
}

function startFolderOf({ startFolder }: Machine): string {
  if (startFolder === undefined)
    throw new HarnessError('NO_FOLDER', 'the folder that this was started in is gone or may not be read')
  return startFolder
}

function ownProtected(root: string, named: readonly string[]): string[] {
  return [...protectedIn(root), ...named.map(path => resolve(root, path))]
}

/** Those of `paths` that are there, links resolved. */
function there(paths: readonly string[]): string[] {
  const found = paths.filter(path => isAbsolute(path) && existsSync(path))
  return [...new Set(found.map(canonical))]
}

/** Whether files there may be such as shells, editors and the desktop run: in a home folder every other file is. */
function holdsHome(path: string, { userHome }: Machine): boolean {
  return path === '/' || (userHome !== undefined && isWithin(path, canonical(userHome)))
}

/** Whether everybody of the machine may make files there, as in /tmp: no folder to hand to anybody as a whole. */
function isShared(path: string): boolean {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & 0o1002) === 0o1002
}
