import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bashSection } from './tools/bash.ts'
import { bashParameters } from './tools/parameters.ts'

const all = { timeoutMs: 60_000, background: true, escalation: true }

test('the arguments of bash are these, and small', () => {
  assert.deepEqual(bashParameters(all), {
    command: { type: 'string', required: true },
    description: { type: 'string', required: true, description: 'what it does, in 5-10 words' },
    timeoutMs: { type: 'number', description: 'default 60000' },
    workdir: { type: 'string', description: 'default: the working folder' },
    run_in_background: { type: 'boolean', description: 'for servers and long work; no timeout' },
    sandbox_permissions: {
      type: 'string',
      enum: ['workspace-write', 'network', 'full-access'],
      description: 'only after a denial; the narrowest',
    },
    justification: { type: 'string', description: 'why, for the user; goes with sandbox_permissions' },
  })
  assert.deepEqual(Object.keys(bashParameters({ ...all, background: false, escalation: false })), [
    'command',
    'description',
    'timeoutMs',
    'workdir',
  ])
})

test('what is said of bash is as long as what there is to say', () => {
  assert.equal(
    bashSection(all),
    'Each bash call is a fresh shell without a terminal or input. What it leaves running may end with it: use run_in_background for servers. Commands are sandboxed, each with its own loopback: use a server in the call that starts it. Just try; when the result says the sandbox denied what you need, ask once with sandbox_permissions; a refusal is final.',
  )
  assert.equal(
    bashSection({ background: false, escalation: false }),
    'Each bash call is a fresh shell without a terminal or input. Send the output of servers to a file and end them with &.',
  )
})
