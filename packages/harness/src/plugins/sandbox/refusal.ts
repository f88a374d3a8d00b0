import { relative } from 'node:path'
import { isWithin } from '../../kernel/index.ts'
import { isProtected } from './protected.ts'
import type { SandboxExecutionPolicy } from './service.ts'

const readOnlyText = 'writing is refused in read-only mode; tell the user what you would do'
const outsideText = (path: string, root: string): string =>
  `${path} is outside of the workspace ${root}; write below it, or tell the user what to change`
const noWorkspaceText = (path: string, reason = 'the session has no workspace'): string =>
  `${path} cannot be written: ${reason}`
const protectedText = (path: string): string =>
  `${path} is protected; leave it as it is and tell the user what to change`
const secretText = (path: string): string => `${path} may hold secrets and is not read; go on without it`

/** What the system tells of processes, their memory and environment among it. */
const processFolder = /^\/proc\/(\d+|self|thread-self)(\/|$)/

/** Why `policy` does not let `path` be written; `name` is what the text calls it. */
export function writeRefusal(
  policy: SandboxExecutionPolicy,
  path: string,
  name: string = path,
): string | undefined {
  const { mode, writableRoots, workspaceRoot } = policy
  if (mode === 'full-access') return undefined
  if (mode === 'read-only') return readOnlyText
  if (!writableRoots.includes(workspaceRoot) && !writableRoots.some(root => isWithin(root, path)))
    return noWorkspaceText(name, policy.noWorkspace)
  const roots = writableRoots.filter(root => isWithin(root, path))
  if (roots.length === 0) return outsideText(name, workspaceRoot)
  const isKept =
    roots.some(root => isProtected(relative(root, path))) ||
    policy.protectedPaths.some(kept => isWithin(kept, path)) ||
    isHidden(policy, path)
  return isKept ? protectedText(name) : undefined
}

/** Why `policy` does not let `path` be read or listed. */
export function readRefusal(
  policy: SandboxExecutionPolicy,
  path: string,
  name: string = path,
): string | undefined {
  if (policy.mode === 'full-access') return undefined
  return processFolder.test(path) || isHidden(policy, path) ? secretText(name) : undefined
}

/** Of what hides a path and what opens it, the one further down counts. */
function isHidden(policy: SandboxExecutionPolicy, path: string): boolean {
  const hidden = deepest(policy.unreadablePaths, path)
  const opened = deepest([policy.workspaceRoot, ...policy.writableRoots, ...policy.readablePaths], path)
  return hidden > opened
}

/** The length of the longest of `folders` that `path` lies in; -1 for none. */
function deepest(folders: readonly string[], path: string): number {
  return Math.max(-1, ...folders.filter(folder => isWithin(folder, path)).map(({ length }) => length))
}
