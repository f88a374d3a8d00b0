import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bubblewrapArgv } from './bubblewrap.ts'
import type { Bubblewrap, World } from './bubblewrap.ts'

const runner: Bubblewrap = {
  program: '/usr/bin/bwrap',
  userNamespace: true,
  lastUserNamespace: true,
  kernelSettings: ['/proc/sys'],
}
const world: World = { mounts: [], network: false, variables: { TMPDIR: '/tmp' }, terminal: false }

function argvOf(change: Partial<World>, other: Partial<Bubblewrap> = {}): string {
  return bubblewrapArgv({ ...runner, ...other }, { ...world, ...change }, ['bash', '-c', 'true']).join(' ')
}

/** What stands between the fixed beginning and the command. */
function mountsOf(mounts: World['mounts']): string {
  return /--ro-bind \/proc\/sys \/proc\/sys (.*)--setenv/.exec(argvOf({ mounts }))?.[1]?.trim() ?? 'none'
}

test('a command sees all read-only, without network, rights, terminal or other processes', () => {
  assert.equal(
    argvOf({}),
    '/usr/bin/bwrap --unshare-user --disable-userns --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try ' +
      '--die-with-parent --cap-drop ALL --unshare-net --new-session --ro-bind / / --dev /dev --proc /proc ' +
      '--ro-bind /proc/sys /proc/sys --setenv TMPDIR /tmp -- bash -c true',
  )
})

test('network, a terminal of its own and what this machine lacks are left out', () => {
  assert.equal(
    argvOf(
      { network: true, terminal: true, variables: { A: '1', TMPDIR: '/t' } },
      { userNamespace: false, lastUserNamespace: false, kernelSettings: [] },
    ),
    '/usr/bin/bwrap --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --die-with-parent --cap-drop ALL ' +
      '--ro-bind / / --dev /dev --proc /proc --setenv A 1 --setenv TMPDIR /t -- bash -c true',
  )
})

test('a place further down is mounted later, whatever order the mounts come in', () => {
  const mounts = [
    { path: '/tmp/shop/.git/hooks', kind: 'keep' },
    { path: '/tmp/shop', kind: 'write' },
    { path: '/run', kind: 'empty' },
    { path: '/tmp/shop/.idea', kind: 'keep' },
    { path: '/tmp', kind: 'write', from: '/home/u/.dsh/tmp/1' },
    { path: '/home/u/.netrc', kind: 'hide-file' },
  ] as const
  assert.equal(
    mountsOf(mounts),
    '--tmpfs /run --bind /home/u/.dsh/tmp/1 /tmp --bind /tmp/shop /tmp/shop --ro-bind /tmp/shop/.idea /tmp/shop/.idea ' +
      '--ro-bind /dev/null /home/u/.netrc --ro-bind /tmp/shop/.git/hooks /tmp/shop/.git/hooks',
  )
})

test('a hidden folder is passed through only where something below it is shown', () => {
  assert.equal(
    mountsOf([
      { path: '/home/u/.ssh', kind: 'hide' },
      { path: '/home/u/.dsh', kind: 'hide' },
      { path: '/home/u/.dsh/skills', kind: 'keep' },
    ]),
    '--perms 0000 --tmpfs /home/u/.ssh --perms 0111 --tmpfs /home/u/.dsh --ro-bind /home/u/.dsh/skills /home/u/.dsh/skills',
  )
})

test('of two mounts at one place the last counts, and the root may be writable', () => {
  assert.equal(
    mountsOf([
      { path: '/a', kind: 'write' },
      { path: '/a', kind: 'hide' },
    ]),
    '--perms 0000 --tmpfs /a',
  )
  assert.match(argvOf({ mounts: [{ path: '/', kind: 'write' }] }), / --bind \/ \/ --dev \/dev /)
})
