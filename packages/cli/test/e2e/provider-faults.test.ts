import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, jsonLines, preload, sessionIn } from './dsh.ts'

const say = "it's the task"

test('a provider that is down, or talks nonsense, fails after some tries', async t => {
  const { dsh, provider } = bench(t)
  const port = await freePort()
  const down = { DEEPSEEK_BASE_URL: `http://127.0.0.1:${port}`, DEEPSEEK_API_KEY: 'sk-x' }
  const { requests } = await provider({ fallback: reply.sse(['data: {no json\n\n'], { done: false }) })
  const hurry = preload({ DSH_TEST_HURRY: '20' })
  const [unreachable, broken] = await Promise.all([
    dsh(['run', say], { env: { ...down, ...hurry } }),
    dsh(['run', '--json', say], { env: hurry }),
  ])

  assert.deepEqual([unreachable.code, unreachable.stdout], [5, ''])
  assert.match(unreachable.stderr, /^↻ TRANSPORT: .* · again in .* \(1 of 5\)\n/m)
  assert.match(unreachable.stderr, new RegExp(`^error TRANSPORT: .*127\\.0\\.0\\.1:${port}`, 'm'))
  const show = await dsh(['session', 'show', sessionIn(unreachable.stderr)])
  assert.match(show.stdout, /^› it's the task\n↻ TRANSPORT/)

  assert.equal(broken.code, 5)
  const { status, error } = jsonLines(broken.stdout).result
  assert.equal(status, 'error')
  assert.match((error as { code: string }).code, /^(MALFORMED_RESPONSE|STREAM_CLOSED|EMPTY_RESPONSE)$/)
  assert.equal(requests.length, 6)
})

test('a refused request shows what the provider said, whatever form it has', async t => {
  const { dsh, provider } = bench(t)
  const { push } = await provider()
  const bodies: [string, string, RegExp][] = [
    ['text/plain', 'plain words', /plain words/],
    ['text/html', '<html><title>Bad gateway</title></html>', /Bad gateway/],
    ['application/json', '{"detail": "strange form"}', /strange form/],
    ['text/plain', '', /empty/],
  ]
  for (const [type, body, pattern] of bodies) {
    push(reply.status(400, { headers: { 'content-type': type }, body }))
    const { code, stderr } = await dsh(['run', say])
    assert.equal(code, 5)
    assert.match(stderr, /^error INVALID_REQUEST: /m)
    assert.match(stderr, pattern)
  }
})

test('an empty account is told and not tried again', async t => {
  const { dsh, provider } = bench(t)
  const { push, requests } = await provider()
  push(reply.status(402, { body: { error: { message: 'Insufficient Balance' } } }))
  const { code, stderr } = await dsh(['run', say])
  assert.deepEqual([code, requests.length], [5, 1])
  assert.match(stderr, /^error QUOTA: .*Insufficient Balance/m)
})

test('a short wait is kept, a long one ends the run with the time', async t => {
  const { dsh, provider } = bench(t)
  const { push, requests } = await provider()
  const busy = (seconds: string) =>
    reply.status(429, { headers: { 'retry-after': seconds }, body: { error: { message: 'slow down' } } })
  push(busy('1'), reply.text('ok'))
  const short = await dsh(['run', say])
  assert.deepEqual([short.code, short.stdout], [0, 'ok\n'])
  assert.match(short.stderr, /^↻ RATE_LIMIT: .* · again in 1\.0 s \(1 of 5\)\n/m)
  push(busy('11180'))
  const long = await dsh(['run', say])
  assert.deepEqual([long.code, requests.length], [5, 3])
  assert.match(long.stderr, /^error RATE_LIMIT: /m)
})

test('a busy provider after a finished tool repeats the request and not the tool', async t => {
  const { dsh, provider, work } = bench(t)
  const busy = reply.status(429, { headers: { 'retry-after': '1' } })
  await provider({
    script: [
      reply.toolCall('bash', { command: 'echo x >> marker; wc -l < marker', description: 'Count' }),
      busy,
      busy,
      reply.text('ok'),
    ],
  })
  const { code, stderr } = await dsh(['run', '--yes', say])
  assert.equal(code, 0)
  assert.match(stderr, /\n● bash .*\n {2}│ 1\n/)
  assert.equal(readFileSync(join(work, 'marker'), 'utf8'), 'x\n')
})

test('an answer that is broken off is asked for again, and its beginning is forgotten', async t => {
  const { dsh, provider } = bench(t)
  await provider({
    script: [reply.text('half an answer').cut({ pieces: 2, how: 'rst' }), reply.text('whole')],
  })
  const { code, stdout } = await dsh(['run', say])
  assert.deepEqual([code, stdout], [0, 'whole\n'])
})

test('malformed arguments and unknown tools go back to the model, and the run goes on', async t => {
  const { dsh, provider } = bench(t)
  const { requests } = await provider({
    script: [
      reply.toolCall('read', '{"file_path": "a'),
      reply.toolCall('raed', { file_path: 'a' }),
      reply.text('I give up.'),
    ],
  })
  const { code, stdout, stderr } = await dsh(['run', say])
  assert.deepEqual([code, stdout], [0, 'I give up.\n'])
  assert.match(stderr, /^✗ read \(.*INVALID_ARGS\)\n/m)
  assert.match(stderr, /^✗ raed a \(.*UNKNOWN_TOOL\)\n {2}│ .*did you mean "read"/m)
  assert.equal(requests.length, 3)
})

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}
