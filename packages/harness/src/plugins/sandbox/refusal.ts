import { relative, sep } from 'node:path'
import { isProtected } from './protected.ts'
import type { SandboxExecutionPolicy } from './service.ts'

const readOnlyText = 'writing is refused in read-only mode; tell the user what you would do'
const outsideText = (path: string, root: string): string =>
  `${path} is outside of the workspace ${root}; write below it, or tell the user what to change`
const noWorkspaceText = (path: string): string => `${path} cannot be written: the session has no workspace`
const protectedText = (path: string): string =>
  `${path} is protected; leave it as it is and tell the user what to change`

/** Why `policy` does not let `path` be written; `name` is what the text calls it. */
export function writeRefusal(
  policy: SandboxExecutionPolicy,
  path: string,
  name: string = path,
): string | undefined {
  const { mode, writableRoots, workspaceRoot } = policy
  if (mode === 'full-access') return undefined
  if (mode === 'read-only') return readOnlyText
  if (writableRoots.length === 0) return noWorkspaceText(name)
  const roots = writableRoots.filter(root => isWithin(root, path))
  if (roots.length === 0) return outsideText(name, workspaceRoot)
  const isKept =
    roots.some(root => isProtected(relative(root, path))) ||
    policy.protectedPaths.some(kept => isWithin(kept, path))
  return isKept ? protectedText(name) : undefined
}

/** True for `parent` itself and everything below it. Both are absolute and canonical. */
export function isWithin(parent: string, path: string): boolean {
  return path === parent || path.startsWith(parent.endsWith(sep) ? parent : parent + sep)
}
