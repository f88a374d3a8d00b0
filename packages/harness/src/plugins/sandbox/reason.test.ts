import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingReason, refusedReason, systemReason } from './reason.ts'

test('whoever has no sandbox is told why and what to do', () => {
  assert.equal(
    missingReason('bubblewrap'),
    'bubblewrap is not installed; install it (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap)',
  )
  assert.equal(missingReason('sandbox-exec'), '/usr/bin/sandbox-exec is missing')
  assert.equal(systemReason('win32'), 'no sandbox exists for Windows; run in WSL 2')
  assert.equal(systemReason('freebsd'), 'no sandbox exists for freebsd; run in a virtual machine with Linux')
  assert.equal(
    refusedReason('setting up uid map: Permission denied'),
    'bubblewrap fails with "setting up uid map: Permission denied": user namespaces are forbidden; as root: sysctl -w kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt seccomp=unconfined',
  )
  assert.match(
    refusedReason("Can't mount proc on /newroot/proc: Operation not permitted"),
    /systempaths=unconfined/,
  )
  assert.match(refusedReason('loopback: Failed RTM_NEWADDR'), /run it by hand to see why$/)
})
