import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench } from './dsh.ts'
import type { Bench } from './dsh.ts'

/** The id of the only session there is. */
async function onlyId({ dsh }: Bench): Promise<string> {
  const rows = (await dsh(['session', 'ls', '--json'])).stdout.trim().split('\n')
  assert.equal(rows.length, 1)
  return (JSON.parse(rows[0] ?? '') as { id: string }).id
}

test('a second program shows a session live until the one that works on it is done', async t => {
  const place = bench(t)
  const gate = Promise.withResolvers<void>()
  const { received, push } = await place.provider()
  push(
    reply.toolCall('bash', { command: 'echo from the shell', description: 'Speak' }),
    reply.text('The last words.').gate(gate.promise),
  )
  const run = place.start(['run', '--yes', 'What is said?'])
  await received(2)
  const id = await onlyId(place)

  const refused = await place.dsh(['run', '-r', id, 'me too'])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /^error SESSION_HELD: /m)

  const reader = place.start(['session', 'show', id, '--follow'])
  await reader.said(/^● bash echo from the shell/m)
  assert.match(reader.out.stdout, /^› What is said\?\n/)
  assert.doesNotMatch(reader.out.stdout, /The last words/)
  gate.resolve()
  await reader.said(/The last words\./)
  assert.equal((await run.ended).code, 0)
  const { code, stdout, stderr } = await reader.ended
  assert.equal(code, 0)
  assert.match(stdout, /\nThe last words\.\n$/)
  assert.equal(stderr, 'nobody has the session open, so nothing more will come\n')
  assert.equal((await place.dsh(['session', 'show', id])).stdout, stdout)
})

test('Ctrl-C ends the one who looks, not the one who works', async t => {
  const place = bench(t)
  const gate = Promise.withResolvers<void>()
  const { received, push } = await place.provider()
  push(reply.text('Done.').gate(gate.promise))
  const run = place.start(['run', 'go'])
  await received(1)
  const reader = place.start(['session', 'show', await onlyId(place), '-f'])
  await reader.said(/^› go$/m)
  reader.child.kill('SIGINT')
  const { code, stderr } = await reader.ended
  assert.deepEqual([code, stderr], [130, ''])
  gate.resolve()
  const { code: ended, stdout } = await run.ended
  assert.deepEqual([ended, stdout], [0, 'Done.\n'])
})

test('the one who looks ends when the one who works is killed', async t => {
  const place = bench(t)
  const { received, push } = await place.provider()
  push(reply.text('never').gate(new Promise<never>(() => {})))
  const run = place.start(['run', 'go'])
  await received(1)
  const reader = place.start(['session', 'show', await onlyId(place), '--follow'])
  await reader.said(/^› go$/m)
  process.kill(-(run.child.pid ?? 0), 'SIGKILL')
  const { code, stderr } = await reader.ended
  assert.deepEqual([code, stderr], [0, 'nobody has the session open, so nothing more will come\n'])
})

test('a session that nobody has open is shown, and that is all', async t => {
  const place = bench(t)
  await place.provider({ fallback: reply.text('ok') })
  await place.dsh(['run', 'one'])
  const { code, stdout, stderr } = await place.dsh(['session', 'show', await onlyId(place), '-f'])
  assert.deepEqual([code, stdout], [0, '› one\nok\n'])
  assert.equal(stderr, 'nobody has the session open, so nothing more will come\n')
})
