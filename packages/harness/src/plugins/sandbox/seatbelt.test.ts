import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seatbeltProfile } from './seatbelt.ts'

const policy = {
  mode: 'workspace-write',
  network: false,
  workspaceRoot: '/Users/u/shop',
  writableRoots: ['/Users/u/shop', '/Users/u/.dsh/tmp/1'],
  protectedPaths: ['/Users/u/shop/.git/hooks', '/Users/u/shop/.vscode'],
  unreadablePaths: ['/Users/u/.ssh', '/Users/u/.dsh'],
  readablePaths: [],
} as const

const start = `(version 1)
(allow default)
(deny file-write*)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper") (regex #"^/dev/ttys[0-9]+$") (regex #"^/dev/fd/"))
(deny process-info* (target others))
(deny signal (target others))
(allow signal (target same-sandbox))
(deny mach-priv-task-port)
(deny appleevent-send)
(deny system-socket)
(deny job-creation)
`

test('the profile writes below the roots alone, keeps protected paths, and hides secrets', () => {
  assert.equal(
    seatbeltProfile(policy),
    `${start}(deny network*)
(deny mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.mDNSResponder"))
(allow file-write* (subpath "/Users/u/shop") (subpath "/Users/u/.dsh/tmp/1"))
(deny file-write* (subpath "/Users/u/shop/.git/hooks") (subpath "/Users/u/shop/.vscode"))
(deny file-write-unlink (literal "/Users/u/shop/.git"))
(deny file-read* file-write* network-outbound (subpath "/Users/u/.ssh"))
(deny file-read* file-write* network-outbound (subpath "/Users/u/.dsh"))
(allow file-read* (subpath "/Users/u/shop"))
(allow file-read* file-write* (subpath "/Users/u/.dsh/tmp/1"))
`,
  )
})

test('a profile that reads only writes nowhere, and quotes what paths hold', () => {
  const readOnly = {
    ...policy,
    mode: 'read-only',
    network: true,
    writableRoots: [],
    protectedPaths: [],
  } as const
  assert.equal(
    seatbeltProfile({ ...readOnly, workspaceRoot: '/w"\\x', unreadablePaths: [] }),
    `${start}(allow file-read* (subpath "/w\\"\\\\x"))\n`,
  )
})
