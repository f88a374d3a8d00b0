import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { MemoryStore } from '../../testing/index.ts'
import { messageOf } from '../../kernel/index.ts'
import { append, startProgram } from '../../testing/contracts/store-program.ts'
import { turnOf } from '../../testing/contracts/store-samples.ts'

const id = SessionId('s1')

async function jobs(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await new Promise(resolve => setImmediate(resolve))
}

test('a write that fails in the background is told once, and made up for by the next', async () => {
  const store = new MemoryStore()
  const { ctx, clock, notices, stop } = await startProgram(store)
  const session = ctx.sessions.create(id)
  store.failure = new Error('no space is left')
  append(session, ['turn/start', { turn: 1 }])
  clock.expire()
  await jobs()
  clock.expire()
  await jobs()
  assert.deepEqual(notices, [{ id, code: 'WRITE_FAILED', message: 'no space is left' }])
  store.failure = undefined
  append(session, ['step/start', { turn: 1, step: 1 }])
  clock.expire()
  await jobs()
  assert.deepEqual(store.events(id), session.events)
  await stop()
})

test('a session whose end cannot be stored is told of, and stored when it is asked for again', async () => {
  const store = new MemoryStore()
  const { ctx, notices, stop } = await startProgram(store)
  const session = ctx.sessions.prepare(id)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  append(session, ...turnOf('a'))
  store.failure = new Error('no space is left')
  leave()
  await jobs()
  assert.deepEqual(notices, [{ id, code: 'RETIRE_FAILED', message: 'no space is left' }])
  await assert.rejects(ctx.sessionPersistence.prepare(id), store.failure)
  assert.throws(() => ctx.sessions.create(id), { code: 'SESSION_LIVE' })
  store.failure = undefined
  const preparation = await ctx.sessionPersistence.prepare(id)
  assert.deepEqual(preparation.session.events.slice(0, 6), session.events)
  await stop()
})

test('a store that ends with something unwritten says so, and frees what it held', async () => {
  const store = new MemoryStore()
  const { ctx, stop } = await startProgram(store)
  const sound = ctx.sessions.create(SessionId('sound'))
  append(sound, ...turnOf('a'))
  await ctx.sessions.flush(sound)
  const session = ctx.sessions.create(id)
  append(session, ...turnOf('a'))
  store.failure = new Error('no space is left')
  await assert.rejects(stop(), /memory could not store everything: Error: no space is left/)
  store.failure = undefined
  const { writer } = await store.open().resume(sound.id)
  await writer.close()
})

test('a store that has ended takes nothing more', async () => {
  const store = new MemoryStore()
  const { ctx, stop } = await startProgram(store)
  append(ctx.sessions.create(id), ...turnOf('a'))
  const persistence = ctx.sessionPersistence
  await stop()
  await assert.rejects(persistence.prepare(id), { code: 'STORE_CLOSED' })
  await assert.rejects(persistence.append(id, []), { code: 'STORE_CLOSED' })
})

test('a session that is being opened when the store ends is not held for ever', async () => {
  const store = new MemoryStore()
  const first = await startProgram(store)
  append(first.ctx.sessions.create(id), ...turnOf('a'))
  await first.stop()
  const { ctx, stop } = await startProgram(store)
  const opening = ctx.sessionPersistence.prepare(id)
  const refused = assert.rejects(opening, { code: 'STORE_CLOSED' })
  await Promise.resolve()
  await Promise.resolve()
  await stop()
  await refused
  const { writer } = await store.open().resume(id)
  await writer.close()
})

test('a session that is only looked at is no session of the store', async () => {
  const store = new MemoryStore()
  const first = await startProgram(store)
  append(first.ctx.sessions.create(id), ...turnOf('a'))
  await first.stop()
  const { ctx, stop } = await startProgram(store)
  const view = await ctx.sessionPersistence.view(id)
  assert.equal(view.length, 6)
  assert.throws(() => append(view, ['turn/start', { turn: 2 }]), {
    code: 'READ_ONLY',
    message: /to be looked at/,
  })
  await assert.rejects(view.artifacts.put(new Uint8Array(1), 'image/png'), { code: 'SESSION_READ_ONLY' })
  ctx.sessions.enter(view)
  ctx.sessions.announce(view)
  await ctx.sessions.flush(view)
  assert.equal(store.writes, 1)
  await stop()
})

test('whoever keeps something beside a log hears that it is gone, and what fails there is reported', async () => {
  const store = new MemoryStore()
  const first = await startProgram(store)
  append(first.ctx.sessions.create(id), ...turnOf('a'))
  await first.stop()
  const { ctx, stop } = await startProgram(store)
  const heard: unknown[] = []
  ctx.on('persistence/removed', async removed => {
    heard.push(removed)
    throw new Error('the cache is broken')
  })
  ctx.on('internal/error', (error, _fiber, where) => {
    const all = error instanceof AggregateError ? error.errors : [error]
    heard.push([where, ...all.map(messageOf)])
  })
  assert.equal(await ctx.sessionPersistence.remove(id), true)
  assert.equal(await ctx.sessionPersistence.remove(id), false)
  assert.deepEqual(heard, [id, ['persistence/removed', 'the cache is broken']])
  await stop()
})
