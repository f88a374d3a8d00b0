import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { appears, bench } from './dsh.ts'

test('after kill -9 in the middle of a command, person and model are told what became of it, once', async t => {
  const { dsh, start, provider, work } = bench(t)
  const { push, requests } = await provider()
  push(
    reply.toolCall('bash', { command: 'touch begun; sleep 60', description: 'work' }),
    reply.text('ok'),
    reply.text('ok'),
  )
  const first = start(['run', '--yes', 'one'])
  await appears(work, 'begun')
  first.child.kill('SIGKILL')
  await first.ended
  const again = await dsh(['run', '-c', 'two'])
  assert.equal(again.code, 0)
  assert.match(
    again.stderr,
    /^recovered: the last run was cut off at \d\d:\d\d:\d\d; it left\n {2}bash touch begun; sleep 60 · outcome unknown: look before it is run again\n/m,
  )
  const told = 'The program ended in the middle of the work above'
  assert.equal(JSON.stringify(requests[1]?.body.messages).split(told).length, 2)
  const third = await dsh(['run', '-c', 'three'])
  assert.doesNotMatch(third.stderr, /^recovered/m)
  assert.equal(
    JSON.stringify(requests[2]?.body.messages).split(told).length,
    2,
    'still history, not said again',
  )
})
