import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { appears, bench, jsonLines } from './dsh.ts'

test('whoever looks at a session in the middle of a command writes nothing, and the command has one result', async t => {
  const { dsh, start, provider, work, logs } = bench(t)
  const { push } = await provider()
  const command = 'touch begun; until [ -e go ]; do sleep 0.05; done; echo finished'
  push(reply.toolCall('bash', { command, description: 'wait' }), reply.text('all done'))
  const first = start(['run', '--yes', '--json', 'one'])
  await appears(work, 'begun')
  const [log = ''] = logs()
  const before = readFileSync(log)
  const id = join(log, '..').split('/').at(-1) ?? ''
  const looks: readonly (readonly string[])[] = [
    ['session', 'ls', '--json'],
    ['session', 'show', id],
    ['session', 'cat', id],
    ['session', 'at', id, '3'],
    ['session', 'request', id, '1'],
    ['session', 'verify', id],
    ['session', 'export', id],
    ['session', 'stats', id],
    ['session', 'search', 'one'],
    ['rewind', id, '--json'],
  ]
  for (const words of looks) {
    const { code, stderr } = await dsh(words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
  }
  const changes = [
    ['run', '-r', id, 'two'],
    ['session', 'repair', id],
    ['session', 'rm', id, '--yes'],
  ]
  for (const words of changes) {
    const { code, stderr } = await dsh(words)
    assert.deepEqual([code, /^error (\w+)/m.exec(stderr)?.[1]], [1, 'SESSION_HELD'], words.join(' '))
  }
  assert.deepEqual(readFileSync(log), before)

  writeFileSync(join(work, 'go'), '')
  const { code, stdout } = await first.ended
  assert.equal(code, 0)
  assert.equal(jsonLines(stdout).result['status'], 'completed')
  const events = (await dsh(['session', 'cat', id])).stdout.trimEnd().split('\n')
  const types = events.map(line => (JSON.parse(line) as { type: string }).type)
  assert.equal(types.filter(type => type === 'tool/result').length, 1)
  assert.deepEqual(
    types.filter(type => type.startsWith('turn/')),
    ['turn/start', 'turn/end'],
  )
  assert.equal((await dsh(['session', 'verify', id])).code, 0)
})
