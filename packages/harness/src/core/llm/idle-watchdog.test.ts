import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { TestContext } from 'node:test'
import { idleWatchdog } from './index.ts'

/** A source whose reads are answered by hand. */
function manual() {
  const reads: PromiseWithResolvers<IteratorResult<string, undefined>>[] = []
  let closings = 0
  const iterator = {
    next() {
      const read = Promise.withResolvers<IteratorResult<string, undefined>>()
      reads.push(read)
      return read.promise
    },
    return() {
      closings++
      return Promise.resolve({ done: true as const, value: undefined })
    },
  }
  return {
    source: { [Symbol.asyncIterator]: () => iterator } as AsyncIterable<string>,
    give: (value: string): void => reads.at(-1)?.resolve({ done: false, value }),
    end: (): void => reads.at(-1)?.resolve({ done: true, value: undefined }),
    closings: () => closings,
  }
}

function useFakeTime(t: TestContext): void {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
}

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

test('silence ends the read with the limit named, and aborts the request', async t => {
  useFakeTime(t)
  const watchdog = idleWatchdog()
  const { source, closings } = manual()
  const reading = watchdog.watch(source).next()
  mock.timers.tick(119_999)
  await turn()
  assert.equal(watchdog.signal.aborted, false)
  mock.timers.tick(1)
  await assert.rejects(reading, {
    code: 'TIMEOUT',
    message: 'the provider sent nothing for 120 s, the idle limit',
  })
  assert.equal((watchdog.signal.reason as { code: string }).code, 'TIMEOUT')
  assert.equal(closings(), 1)
})

test('whatever arrives starts the clock anew', async t => {
  useFakeTime(t)
  const { source, give, end } = manual()
  const stream = idleWatchdog({ limitMs: 100 }).watch(source)
  for (let round = 0; round < 5; round++) {
    const reading = stream.next()
    mock.timers.tick(90)
    give(`byte ${round}`)
    assert.deepEqual(await reading, { done: false, value: `byte ${round}` })
  }
  const last = stream.next()
  end()
  assert.deepEqual(await last, { done: true, value: undefined })
})

test('time that the consumer takes does not count', async t => {
  useFakeTime(t)
  const watchdog = idleWatchdog({ limitMs: 100 })
  const { source, give } = manual()
  const stream = watchdog.watch(source)
  const first = stream.next()
  give('a')
  await first
  mock.timers.tick(10_000)
  const second = stream.next()
  give('b')
  assert.deepEqual(await second, { done: false, value: 'b' })
  assert.equal(watchdog.signal.aborted, false)
})

test('an abort of the caller ends the read at once and stays an abort', async t => {
  useFakeTime(t)
  const caller = new AbortController()
  const watchdog = idleWatchdog({ limitMs: 100, signal: caller.signal })
  const { source } = manual()
  const reading = watchdog.watch(source).next()
  mock.timers.tick(99)
  caller.abort({ kind: 'user' })
  mock.timers.tick(1000)
  await assert.rejects(reading, { code: 'ABORTED', cause: { kind: 'user' } })
  assert.deepEqual(watchdog.signal.reason, { kind: 'user' })
  await assert.rejects(watchdog.guard(Promise.resolve(1)), { code: 'ABORTED' })
})

test('silence that came first stays silence', async t => {
  useFakeTime(t)
  const caller = new AbortController()
  const watchdog = idleWatchdog({ limitMs: 100, signal: caller.signal })
  const reading = watchdog.guard(new Promise(() => {}))
  mock.timers.tick(100)
  caller.abort()
  await assert.rejects(reading, { code: 'TIMEOUT' })
  await assert.rejects(watchdog.guard(Promise.reject(new Error('body was aborted'))), { code: 'TIMEOUT' })
})

test('a caller that is gone already is told so before anything is read', async () => {
  const watchdog = idleWatchdog({ signal: AbortSignal.abort() })
  await assert.rejects(watchdog.guard(new Promise(() => {})), { code: 'ABORTED' })
})

test('what the source itself fails with passes', async () => {
  const failure = new Error('reset')
  await assert.rejects(idleWatchdog().guard(Promise.reject(failure)), error => error === failure)
})

test('no timer and no listener outlives a read', async t => {
  useFakeTime(t)
  const caller = new AbortController()
  const watchdog = idleWatchdog({ limitMs: 100, signal: caller.signal })
  await watchdog.guard(Promise.resolve(1))
  await assert.rejects(watchdog.guard(Promise.reject(new Error('x'))))
  mock.timers.tick(1000)
  assert.equal(watchdog.signal.aborted, false)
})

test('leaving between two reads closes the source and waits for it', async () => {
  const { source, give, closings } = manual()
  const stream = idleWatchdog().watch(source)
  const first = stream.next()
  give('a')
  await first
  await stream.return(undefined)
  assert.equal(closings(), 1)
})

test('a limit that no timer can keep is refused', () => {
  for (const limitMs of [0, -1, NaN, Infinity, 2_147_483_648]) {
    assert.throws(() => idleWatchdog({ limitMs }), RangeError)
  }
})
