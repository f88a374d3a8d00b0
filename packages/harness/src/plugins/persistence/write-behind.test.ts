import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WriteBehind } from './write-behind.ts'

/** A queue over a growing list, with a clock that only the test moves and writes that only the test ends. */
function setup() {
  const items: number[] = []
  const batches: (readonly number[])[] = []
  const failures: unknown[] = []
  const open: { resolve: () => void; reject: (error: Error) => void }[] = []
  const clock = fakeClock()
  let written = 0
  const queue = new WriteBehind({
    hasMore: () => written < items.length,
    async write() {
      const batch = items.slice(written)
      batches.push(batch)
      await new Promise<void>((resolve, reject) => open.push({ resolve, reject }))
      written += batch.length
    },
    delayMs: 200,
    timers: clock,
    onFailure: error => failures.push(error),
  })
  const add = (item: number): void => {
    items.push(item)
    queue.touch()
  }
  const settle = async (error?: Error): Promise<void> => {
    const write = open.shift()
    assert.ok(write !== undefined, 'no write is open')
    if (error === undefined) write.resolve()
    else write.reject(error)
    await jobs()
  }
  return { queue, add, clock, batches, failures, open, settle }
}

function fakeClock() {
  let now = 0
  const waiting = new Map<object, { at: number; callback: () => void }>()
  return {
    set(callback: () => void, ms: number): object {
      const timer = {}
      waiting.set(timer, { at: now + ms, callback })
      return timer
    },
    clear: (timer: unknown) => void waiting.delete(timer as object),
    advance(ms: number): void {
      now += ms
      for (const [timer, { at, callback }] of waiting) {
        if (at > now) continue
        waiting.delete(timer)
        callback()
      }
    },
    get timers() {
      return waiting.size
    },
  }
}

async function jobs(): Promise<void> {
  for (let count = 0; count < 20; count += 1) await Promise.resolve()
}

test('the first item opens a window that later ones do not extend', async () => {
  const { add, clock, batches } = setup()
  add(1)
  clock.advance(150)
  add(2)
  assert.deepEqual(batches, [])
  clock.advance(50)
  assert.deepEqual(batches, [[1, 2]])
})

test('twenty items of ten milliseconds each are one batch of the two-hundred millisecond window', async () => {
  const { add, clock, batches } = setup()
  for (let item = 0; item < 20; item += 1) {
    add(item)
    clock.advance(10)
  }
  assert.deepEqual(
    batches.map(batch => batch.length),
    [20],
  )
})

test('items of a long write get a window of their own, and go at once where it ended meanwhile', async () => {
  const { add, clock, batches, settle } = setup()
  add(1)
  clock.advance(200)
  add(2)
  clock.advance(200)
  assert.deepEqual(batches, [[1]])
  await settle()
  assert.deepEqual(batches, [[1], [2]])
})

test('items of a short write keep the rest of their window', async () => {
  const { add, clock, batches, settle } = setup()
  add(1)
  clock.advance(200)
  add(2)
  clock.advance(150)
  await settle()
  assert.deepEqual(batches, [[1]])
  clock.advance(50)
  assert.deepEqual(batches, [[1], [2]])
})

test('a flush does not wait for the window', async () => {
  const { queue, add, clock, batches, settle } = setup()
  add(1)
  const flushed = queue.flush()
  await jobs()
  assert.deepEqual(batches, [[1]])
  assert.equal(clock.timers, 0)
  await settle()
  await flushed
})

test('a flush of nothing writes nothing', async () => {
  const { queue, batches } = setup()
  await queue.flush()
  assert.deepEqual(batches, [])
})

test('callers of flush share one run, which also writes what is added meanwhile', async () => {
  const { queue, add, batches, settle } = setup()
  add(1)
  const first = queue.flush()
  await jobs()
  add(2)
  const second = queue.flush()
  assert.equal(first, second)
  await settle()
  assert.deepEqual(batches, [[1], [2]])
  await settle()
  await second
})

test('an item added when the flush is over opens a window', async () => {
  const { queue, add, clock, batches, settle } = setup()
  add(1)
  const flushed = queue.flush()
  await jobs()
  await settle()
  await flushed
  add(2)
  clock.advance(200)
  assert.deepEqual(batches, [[1], [2]])
})

test('a flush waits for a write that is under way, and tries again what it failed at', async () => {
  const { queue, add, clock, batches, failures, settle } = setup()
  add(1)
  clock.advance(200)
  add(2)
  const flushed = queue.flush()
  await jobs()
  assert.deepEqual(batches, [[1]])
  await settle(new Error('disk full'))
  assert.deepEqual(batches, [[1], [1, 2]])
  await settle()
  await flushed
  assert.equal(failures.length, 1)
})

test('a failed background write is told once and waits for the next item', async () => {
  const { add, clock, batches, failures, settle } = setup()
  add(1)
  clock.advance(200)
  await settle(new Error('disk full'))
  clock.advance(10_000)
  assert.deepEqual(batches, [[1]])
  assert.deepEqual(
    failures.map(error => (error as Error).message),
    ['disk full'],
  )
  add(2)
  clock.advance(200)
  assert.deepEqual(batches, [[1], [1, 2]])
})

test('a failed flush rejects, keeps the batch in order, and the next one writes it', async () => {
  const { queue, add, batches, failures, settle } = setup()
  add(1)
  const failed = queue.flush()
  await jobs()
  add(2)
  const rejected = assert.rejects(failed, { message: 'disk full' })
  await settle(new Error('disk full'))
  await rejected
  assert.deepEqual(failures, [])
  const flushed = queue.flush()
  await jobs()
  await settle()
  await flushed
  assert.deepEqual(batches, [[1], [1, 2]])
})

test('an idle queue has no timer', async () => {
  const { queue, add, clock, settle } = setup()
  add(1)
  assert.equal(clock.timers, 1)
  const flushed = queue.flush()
  await jobs()
  await settle()
  await flushed
  assert.equal(clock.timers, 0)
})
