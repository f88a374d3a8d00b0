import { isWithin } from '../../kernel/index.ts'
import type { SandboxExecutionPolicy } from './service.ts'

export const seatbeltProgram = '/usr/bin/sandbox-exec'

const always = `(version 1)
(allow default)
(deny file-write*)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper") (regex #"^/dev/ttys[0-9]+$") (regex #"^/dev/fd/"))
(deny process-info* (target others))
(deny signal (target others))
(allow signal (target same-sandbox))
(deny mach-priv-task-port)
(deny appleevent-send)
(deny system-socket)
(deny job-creation)`

const noNetwork = `(deny network*)
(deny mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.mDNSResponder"))`

/**
 * The profile that macOS holds a process and its children to. The last rule that matches decides.
 *
 * Only its text is tested: nothing here has run it. A path protects itself, everything below, and the folders that lead
 * to it from being moved; what is not there yet is covered as well.
 */
export function seatbeltProfile(policy: SandboxExecutionPolicy): string {
  const { network, writableRoots, protectedPaths, unreadablePaths, readablePaths, workspaceRoot } = policy
  const opened = new Set([workspaceRoot, ...writableRoots, ...readablePaths])
  const byDepth = [...new Set([...unreadablePaths, ...opened])].toSorted((a, b) => a.length - b.length)
  const moved = new Set(protectedPaths.flatMap(path => foldersAbove(path, writableRoots)))
  const hidden = byDepth.map(path => {
    if (!opened.has(path)) return `(deny file-read* file-write* network-outbound ${below(path)})`
    const isHiddenAbove = unreadablePaths.some(other => other !== path && isWithin(other, path))
    const deeds = writableRoots.includes(path) && isHiddenAbove ? 'file-read* file-write*' : 'file-read*'
    return `(allow ${deeds} ${below(path)})`
  })
  return [
    always,
    ...(network ? [] : [noNetwork]),
    ...rule('allow file-write*', writableRoots.map(below)),
    ...rule('deny file-write*', protectedPaths.map(below)),
    ...rule(
      'deny file-write-unlink',
      [...moved].map(path => `(literal ${quoted(path)})`),
    ),
    ...hidden,
    '',
  ].join('\n')
}

function below(path: string): string {
  return `(subpath ${quoted(path)})`
}

function rule(deed: string, filters: readonly string[]): string[] {
  return filters.length === 0 ? [] : [`(${deed} ${filters.join(' ')})`]
}

function foldersAbove(path: string, roots: readonly string[]): string[] {
  const parts = path.split('/')
  return parts
    .map((_, count) => parts.slice(0, count).join('/'))
    .filter(folder => roots.some(root => folder.startsWith(`${root}/`)))
}

/** As a string of the profile's language. */
function quoted(path: string): string {
  return `"${path.replace(/[\\"]/g, '\\$&')}"`
}
