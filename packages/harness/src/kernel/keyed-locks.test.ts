import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { KeyedLocks } from './keyed-locks.ts'

test('jobs of one key run one after another, those of others meanwhile, and a failure stops nobody', async () => {
  const locks = new KeyedLocks<string>()
  const log: string[] = []
  const gate = Promise.withResolvers<void>()
  const job = (name: string, wait?: Promise<void>) => async (): Promise<string> => {
    log.push(`${name} begins`)
    await wait
    log.push(`${name} ends`)
    if (name === 'a2') throw new Error(name)
    return name
  }
  const results = Promise.allSettled([
    locks.run('a', job('a1', gate.promise)),
    locks.run('a', job('a2')),
    locks.run('b', job('b1')),
    locks.run('a', job('a3')),
  ])
  await setImmediate()
  assert.deepEqual(log, ['a1 begins', 'b1 begins', 'b1 ends'])
  gate.resolve()
  assert.deepEqual(
    (await results).map(result => (result.status === 'fulfilled' ? result.value : 'failed')),
    ['a1', 'failed', 'b1', 'a3'],
  )
  assert.deepEqual(log.slice(3), ['a1 ends', 'a2 begins', 'a2 ends', 'a3 begins', 'a3 ends'])
  await locks.settled()
})

test('a job that still waits when it is called off never runs, and what comes behind it waits for those before', async () => {
  const locks = new KeyedLocks<string>()
  const log: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = locks.run('a', async () => {
    await gate.promise
    log.push('first')
  })
  const controller = new AbortController()
  const reason = new Error('changed my mind')
  const second = locks.run('a', async () => void log.push('second'), controller.signal)
  const third = locks.run('a', async () => void log.push('third'))
  controller.abort(reason)
  await assert.rejects(second, reason)
  await setImmediate()
  assert.deepEqual(log, [])
  gate.resolve()
  await Promise.all([first, third])
  assert.deepEqual(log, ['first', 'third'])
  await assert.rejects(
    locks.run('a', async () => {}, AbortSignal.abort(reason)),
    reason,
  )
})
