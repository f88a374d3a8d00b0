import assert from 'node:assert/strict'
import { test } from 'node:test'
import { permissionLine, unconfinedText } from './permission.ts'

const confined = 'commands run in a sandbox, where one works, without the network'

test('a run says what tools may do, and who can allow more', () => {
  const files = 'workspace-write: files of the folder may be changed'
  assert.equal(
    permissionLine('workspace-write', { answers: 'asked', hasNetwork: false }),
    `${files}; ${confined}; you are asked for more`,
  )
  assert.equal(
    permissionLine('workspace-write', { answers: 'yes', hasNetwork: false }),
    `${files}; ${confined}; what is asked is allowed, but nothing beyond the sandbox`,
  )
  assert.equal(
    permissionLine('workspace-write', { answers: 'nobody', hasNetwork: false }),
    `${files}; ${confined}; more is refused`,
  )
  assert.equal(
    permissionLine('read-only', { answers: 'nobody', hasNetwork: false }),
    `read-only: no file is changed; ${confined}; more is refused`,
  )
  assert.equal(
    permissionLine('read-only', { answers: 'asked', hasNetwork: true }),
    'read-only: no file is changed; commands run in a sandbox, where one works, with the network; you are asked for more',
  )
  assert.equal(
    permissionLine('full-access', { answers: 'asked', hasNetwork: false }),
    'full-access: nothing is asked, and commands run with your own rights',
  )
})

test('where no sandbox works, what becomes of commands is said', () => {
  assert.equal(
    unconfinedText('workspace-write', 'asked'),
    'no sandbox works here, so you are asked before commands that may do more than read, which run with your own rights',
  )
  assert.equal(
    unconfinedText('workspace-write', 'yes'),
    'no sandbox works here, so commands run with your own rights',
  )
  const refused = 'no sandbox works here, so commands that may do more than read are refused'
  assert.equal(unconfinedText('workspace-write', 'nobody'), refused)
  assert.equal(unconfinedText('read-only', 'yes'), refused)
})
