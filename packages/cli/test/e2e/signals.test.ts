import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { reply } from '@dsh/harness/testing'
import { bench, jsonLines } from './dsh.ts'

const codes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
const never = new Promise<never>(() => {})

for (const [signal, expected] of Object.entries(codes)) {
  test(`${signal} cancels the turn, and the log stays whole`, async t => {
    const { start, dsh, provider } = bench(t)
    const { received, push } = await provider()
    push(reply.text('some words of an answer').gate(never, 2), reply.text('ok'))
    const run = start(['run', '--json', 'go'])
    await received(1)
    while (!run.out.stdout.includes('text-delta')) await once(run.child.stdout, 'data')
    run.child.kill(signal as NodeJS.Signals)
    const { code, stdout, stderr } = await run.ended
    assert.equal(code, expected)
    const { events, result } = jsonLines(stdout)
    assert.equal(result['status'], 'aborted')
    assert.equal(events.at(-1)?.['type'], 'turn/end')
    assert.match(stderr, /\ncancelled\nsession \w+ · .* · go on: /)
    const again = await dsh(['run', '-r', String(result['sessionId']), 'more'])
    assert.deepEqual([again.code, again.stdout], [0, 'ok\n'])
  })
}

test('a running command ends with its turn', async t => {
  const { start, provider, work } = bench(t)
  await provider({
    script: [reply.toolCall('bash', { command: 'echo $$ > pid; sleep 1000', description: 'Wait' })],
  })
  const run = start(['run', '--permission', 'full-access', 'go'])
  const pid = await pidIn(join(work, 'pid'))
  run.child.kill('SIGINT')
  assert.equal((await run.ended).code, 130)
  await gone(pid)
})

test('a second signal ends at once and takes the children along', async t => {
  const { start, dsh, provider, work } = bench(t)
  await provider({
    script: [
      reply.toolCall('bash', {
        command: "trap '' TERM INT; echo $$ > pid; while :; do sleep 1; done",
        description: 'Stay',
      }),
      reply.text('ok'),
    ],
  })
  const run = start(['run', '--permission', 'full-access', 'go'])
  const pid = await pidIn(join(work, 'pid'))
  run.child.kill('SIGINT')
  await sleep(300)
  run.child.kill('SIGINT')
  const { code, stderr } = await run.ended
  assert.equal(code, 130)
  assert.doesNotMatch(stderr, /go on:/, 'nothing was waited for')
  await gone(pid)
  assert.equal((await dsh(['run', '-c', 'more'])).code, 0)
})

test('a signal before the model is asked ends with its code and stores nothing', async t => {
  const { start, logs } = bench(t)
  const run = start(['run', '--json'], { input: null })
  // The last one that is listened to; Node itself catches the others from its start.
  await catches(run.child.pid ?? 0, 'SIGHUP')
  run.child.kill('SIGTERM')
  const { code, stdout, stderr } = await run.ended
  assert.equal(code, 143)
  assert.match(stderr, /^error CANCELLED: SIGTERM came before the model was asked\n/)
  assert.equal((jsonLines(stdout).result['error'] as { code: string }).code, 'CANCELLED')
  assert.deepEqual(logs(), [])
})

test('a reader that leaves ends the run, and the exit code says so', async t => {
  const { start, provider, dsh } = bench(t)
  const { received, push } = await provider()
  const gate = Promise.withResolvers<void>()
  push(reply.text('a long answer of many words').gate(gate.promise, 2), reply.text('ok'))
  const run = start(['run', '--json', 'go'])
  await received(1)
  run.child.stdout.destroy()
  gate.resolve()
  const { code, stderr } = await run.ended
  assert.equal(code, 1)
  assert.match(stderr, /\nerror OUTPUT_CLOSED: standard output could not be written: EPIPE\n/)
  assert.equal((await dsh(['run', '-c', 'more'])).code, 0)
})

test('an answer nobody takes is no success', async t => {
  const { start, provider } = bench(t)
  const { received, push } = await provider()
  const gate = Promise.withResolvers<void>()
  push(reply.text('answer').gate(gate.promise))
  const run = start(['run', 'go'])
  await received(1)
  run.child.stdout.destroy()
  gate.resolve()
  const { code, stderr } = await run.ended
  assert.equal(code, 1)
  assert.match(stderr, /\nerror OUTPUT_CLOSED: /)
})

/** Resolves once process `pid` handles the signal. */
async function catches(pid: number, signal: NodeJS.Signals): Promise<void> {
  const bit = 1n << BigInt(constants.signals[signal] - 1)
  await until(() => {
    const caught = /^SigCgt:\t(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
    return (BigInt(`0x${caught}`) & bit) !== 0n
  })
}

async function pidIn(file: string): Promise<number> {
  await until(() => existsSync(file) && readFileSync(file, 'utf8') !== '')
  return Number(readFileSync(file, 'utf8'))
}

async function gone(pid: number): Promise<void> {
  await until(() => !existsSync(`/proc/${pid}`))
}

/** Looks every 20 ms, for ten seconds. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let looks = 0; looks < 500; looks++) {
    if (isTrue()) return
    await sleep(20)
  }
  throw new Error('it did not come true')
}

const stuck = `
export const plugin = {
  name: 'stuck',
  apply: ctx => ctx.effect(() => {
    const timer = setInterval(() => {}, 1000)
    return () => {
      timer.ref()
      process.stderr.write('stuck now\\n')
      return new Promise(() => {})
    }
  }, 'stuck'),
}
`

for (const times of [1, 2]) {
  test(`a plugin that never lets go holds nothing up: Ctrl-C sent ${times === 1 ? 'once' : 'twice'}`, async t => {
    const { start, dsh, provider, home, work } = bench(t)
    mkdirSync(home, { recursive: true })
    writeFileSync(join(home, 'stuck.ts'), stuck)
    writeFileSync(join(home, 'dsh.yml'), '- name: ./stuck.ts\n')
    await provider({
      script: [
        reply.toolCall('bash', { command: 'echo $$ > pid; sleep 1000', description: 'Wait' }),
        reply.text('ok'),
      ],
    })
    const run = start(['run', '--permission', 'full-access', 'go'])
    const pid = await pidIn(join(work, 'pid'))
    run.child.kill('SIGINT')
    while (!run.out.stderr.includes('stuck now')) await once(run.child.stderr, 'data')
    if (times === 2) run.child.kill('SIGINT')
    assert.equal((await run.ended).code, 130)
    await gone(pid)
    writeFileSync(join(home, 'dsh.yml'), '')
    assert.equal((await dsh(['run', '-c', 'more'])).code, 0)
  })
}
