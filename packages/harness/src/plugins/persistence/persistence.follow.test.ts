import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { logOf, MemoryStore } from '../../testing/index.ts'
import { append, startProgram } from '../../testing/contracts/store-program.ts'
import { headerOf, turnOf } from '../../testing/contracts/store-samples.ts'
import type { Medium } from './index.ts'

const id = SessionId('s1')

interface Watched {
  readonly store: MemoryStore
  /** How often the log was streamed. */
  streams: number
  /** Those who are told of changes. */
  watchers: number
}

/** A stored turn, in a store that counts, with methods of its own. */
async function setup(own: (inner: Medium) => Partial<Medium> = () => ({})) {
  const store = new MemoryStore()
  await write(store, logOf(...turnOf('a')))
  const watched: Watched = { store, streams: 0, watchers: 0 }
  const program = await startProgram({
    open() {
      const inner = store.open()
      return {
        ...inner,
        stream(each, options) {
          watched.streams += 1
          return inner.stream(each, options)
        },
        watch(each, onChange) {
          watched.watchers += 1
          const stop = inner.watch?.(each, onChange)
          return () => {
            watched.watchers -= 1
            stop?.()
          }
        },
        ...own(inner),
      }
    },
  })
  return { ...program, store, watched, follow: () => program.ctx.sessionPersistence.follow(id) }
}

async function write(store: MemoryStore, events: readonly SessionEvent[]): Promise<void> {
  const [first] = events
  const medium = store.open()
  const writer = first?.seq === 0 ? medium.begin(headerOf('s1')) : (await medium.resume(id)).writer
  await writer.append(events)
  await writer.close()
}

async function settled(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await new Promise(resolve => setImmediate(resolve))
}

test('where a medium tells of nothing, changes are found by looking from time to time', async () => {
  const { store, clock, watched, follow, stop } = await setup(() => ({ watch: undefined as never }))
  const reader = follow()[Symbol.asyncIterator]()
  for (let count = 0; count < 6; count += 1) await reader.next()
  const next = reader.next()
  clock.look()
  await settled()
  clock.look()
  await settled()
  assert.equal(watched.streams, 1, 'what has not changed is not read again')
  const more = logOf(...turnOf('a'), ...turnOf('b', 2)).slice(6)
  await write(store, more)
  await settled()
  assert.equal(watched.streams, 1)
  clock.look()
  assert.deepEqual((await next).value, more[0])
  await stop()
})

test('a reader that leaves in the middle leaves nothing behind', async () => {
  const { watched, follow, stop } = await setup()
  for await (const event of follow()) {
    assert.equal(watched.watchers, 1)
    if (event.seq === 3) break
  }
  assert.equal(watched.watchers, 0)
  await stop()
})

test('what looks like damage while somebody writes is looked at once more', async () => {
  let reads = 0
  const { clock, follow, stop } = await setup(inner => ({
    async *stream(each, options) {
      reads += 1
      if (reads === 1) {
        yield { events: logOf(...turnOf('a')).slice(0, 2) }
        yield { gap: { fromSeq: 2, toSeq: 5, bytes: 9, reason: 'it is being written' }, events: [] }
      } else yield* inner.stream(each, options)
    },
  }))
  const shown: SessionEvent[] = []
  const reader = follow()[Symbol.asyncIterator]()
  for (let count = 0; count < 2; count += 1) shown.push((await reader.next()).value as SessionEvent)
  const third = reader.next()
  await settled()
  clock.look()
  shown.push((await third).value as SessionEvent)
  assert.deepEqual(shown, logOf(...turnOf('a')).slice(0, 3))
  await stop()
})

test('following a live session that ends without an event ends', async () => {
  const { ctx, stop } = await startProgram(new MemoryStore())
  const session = ctx.sessions.prepare(id)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  const reader = ctx.sessionPersistence.follow(id)[Symbol.asyncIterator]()
  const next = reader.next()
  await settled()
  leave()
  assert.equal((await next).done, true)
  await stop()
})

test('several may follow one session, each at a pace of its own', async () => {
  const { ctx, stop } = await startProgram(new MemoryStore())
  const session = ctx.sessions.create(id)
  const reader = (): (() => Promise<unknown>) => {
    const events = ctx.sessionPersistence.follow(id)[Symbol.asyncIterator]()
    return async () => ((await events.next()).value as SessionEvent).seq
  }
  const [fast, slow, late] = [reader(), reader(), reader()]
  append(session, ...turnOf('a'))
  for (let seq = 0; seq < 6; seq += 1) assert.equal(await fast(), seq)
  assert.equal(await slow(), 0)
  append(session, ...turnOf('b', 2))
  assert.deepEqual([await fast(), await slow(), await late()], [6, 1, 0])
  await stop()
})
