import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { appears, bench } from './dsh.ts'

const isMissing = !existsSync('/usr/bin/bwrap') && process.env['CI'] !== 'true'
const skip = process.platform !== 'linux' ? 'bubblewrap is of Linux' : isMissing ? 'no bubblewrap' : false
const options = { skip, timeout: 120_000 }
const bash = (command: string) => reply.toolCall('bash', { command, description: 'Do it' })

test('names that a killed run took are free again after the next, wherever that works', options, async t => {
  const { start, dsh, work, root, home, provider } = bench(t)
  const other = join(root, 'other')
  mkdirSync(other)
  const script = [bash('touch begun; sleep 60'), bash('true'), reply.text('done')]
  await provider({ script, fallback: reply.text('a title') })
  const { child, ended } = start(['run', 'go'])
  await appears(work, 'begun')
  child.kill('SIGKILL')
  await Promise.all([once(child, 'exit'), ended])
  assert.deepEqual(
    readdirSync(work).filter(name => name.startsWith('.')),
    ['.claude', '.codex', '.dsh', '.envrc', '.git', '.idea', '.vscode'],
  )
  assert.equal((await dsh(['run', 'go on'], { cwd: other })).code, 0)
  assert.deepEqual([readdirSync(work), readdirSync(other)], [['begun'], []])
  assert.deepEqual(readdirSync(join(home, 'tmp')), [])
})
