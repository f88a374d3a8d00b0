import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { logOf, MemoryStore } from '../../testing/index.ts'
import { append, startProgram } from '../../testing/contracts/store-program.ts'
import { headerOf, turnOf } from '../../testing/contracts/store-samples.ts'
import { PersistenceError } from './index.ts'
import type { Medium } from './index.ts'

const id = SessionId('s1')

async function settled(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await new Promise(resolve => setImmediate(resolve))
}

/** A store whose medium has some methods of its own. */
function placeWith(store: MemoryStore, own: (inner: Medium) => Partial<Medium>): { open(): Medium } {
  return {
    open() {
      const inner = store.open()
      return { ...inner, ...own(inner) }
    },
  }
}

test('an id that was created is for a live session of the same folder, and of no other', async () => {
  const store = new MemoryStore()
  const { ctx, stop } = await startProgram(store)
  await ctx.sessionPersistence.create(headerOf('s1', { cwd: '/srv/one' }))
  assert.throws(() => ctx.sessions.create(id, { meta: { cwd: '/srv/two' } }), { code: 'SESSION_EXISTS' })
  assert.equal(ctx.sessions.get(id), undefined)
  const session = ctx.sessions.create(id, { meta: { cwd: '/srv/one' } })
  append(session, ...turnOf('a'))
  await ctx.sessions.flush(session)
  assert.deepEqual(store.events(id), session.events)
  await stop()
})

test('a live session does not go on with a log that was begun in another folder', async () => {
  const store = new MemoryStore()
  const { ctx, unmount, mount, stop } = await startProgram(store)
  await unmount()
  const session = ctx.sessions.create(id, { meta: { cwd: '/srv/one' } })
  append(session, ['turn/start', { turn: 1 }])
  const writer = store.open().begin(headerOf('s1', { cwd: '/srv/two' }))
  await writer.append(session.events)
  await writer.close()
  await mount()
  append(session, ['step/start', { turn: 1, step: 1 }])
  await assert.rejects(ctx.sessions.flush(session), { code: 'SESSION_EXISTS' })
  assert.equal(store.events(id).length, 1)
  await assert.rejects(stop())
})

test('the end of a session that another has replaced leaves the other alone', async () => {
  const store = new MemoryStore()
  const { ctx, clock, stop } = await startProgram(store)
  const first = ctx.sessions.prepare(id)
  const leave = ctx.sessions.enter(first)
  ctx.sessions.announce(first)
  leave()
  const second = ctx.sessions.create(id)
  append(second, ['turn/start', { turn: 1 }])
  await settled()
  append(second, ['step/start', { turn: 1, step: 1 }])
  clock.expire()
  await settled()
  assert.deepEqual(store.events(id), second.events)
  await assert.rejects(ctx.sessionPersistence.prepare(id), { code: 'SESSION_LIVE' })
  await stop()
})

test('whoever asks for a session that is ending waits until its end is stored', async () => {
  for (const ask of ['prepare', 'load', 'inspect', 'readFrom', 'stream', 'view'] as const) {
    const store = new MemoryStore()
    const { ctx, stop } = await startProgram(store)
    const session = ctx.sessions.prepare(id)
    const leave = ctx.sessions.enter(session)
    ctx.sessions.announce(session)
    append(session, ...turnOf('a'))
    leave()
    const { sessionPersistence: stored } = ctx
    const found = await {
      prepare: async () => (await stored.prepare(id)).session.events.slice(0, 6),
      load: async () => (await stored.load(id)).events,
      inspect: async () => (await stored.inspect(id)).events,
      readFrom: async () => (await stored.readFrom(id, 0)).events,
      stream: async () => (await Array.fromAsync(stored.stream(id))).flatMap(({ events }) => events),
      view: async () => (await stored.view(id)).events,
    }[ask]()
    assert.deepEqual(found, session.events, ask)
    await stop()
  }
})

test('whoever waits for the end of a session may leave at once', async () => {
  const store = new MemoryStore()
  const stuck = Promise.withResolvers<void>()
  const place = placeWith(store, inner => ({
    begin: header => {
      const writer = inner.begin(header)
      return { ...writer, append: events => stuck.promise.then(() => writer.append(events)) }
    },
  }))
  const { ctx, stop } = await startProgram(place)
  const session = ctx.sessions.prepare(id)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  append(session, ...turnOf('a'))
  leave()
  const reason = new Error('changed my mind')
  for (const ask of ['prepare', 'load', 'inspect', 'view'] as const) {
    const controller = new AbortController()
    const asked = assert.rejects(ctx.sessionPersistence[ask](id, controller.signal), reason)
    await settled()
    controller.abort(reason)
    await asked
  }
  stuck.resolve()
  await stop()
  assert.deepEqual(store.events(id), session.events)
})

test('a session that became live while it was about to be loaded is not repaired', async () => {
  const store = new MemoryStore()
  const stuck = Promise.withResolvers<void>()
  const place = placeWith(store, inner => ({
    resume: (each, options) => stuck.promise.then(() => inner.resume(each, options)),
  }))
  const events = logOf(['turn/start', { turn: 1 }], ['step/start', { turn: 1, step: 1 }])
  const writer = store.open().begin(headerOf('s1'))
  await writer.append(events.slice(0, 1))
  await writer.close()
  const { ctx, stop } = await startProgram(place)
  const { sessionPersistence } = ctx
  const appending = sessionPersistence.append(id, events.slice(1))
  const loading = assert.rejects(sessionPersistence.load(id), { code: 'SESSION_LIVE' })
  await settled()
  ctx.sessions.create(id, { meta: headerOf('s1') })
  stuck.resolve()
  await appending
  await loading
  assert.deepEqual(store.events(id), events)
  await stop()
})

test('a flush of what is stored writes nothing', async () => {
  const store = new MemoryStore()
  const { ctx, clock, stop } = await startProgram(store)
  const session = ctx.sessions.create(id)
  append(session, ...turnOf('a'))
  await ctx.sessions.flush(session)
  await Promise.all([ctx.sessions.flush(session), ctx.sessions.flush(session)])
  clock.expire()
  await stop()
  assert.equal(store.writes, 1)
})

test('events that were refused by the disk are stored in order, however many they are', async () => {
  const store = new MemoryStore()
  const { ctx, stop } = await startProgram(store)
  const session = ctx.sessions.create(id)
  append(session, ['turn/start', { turn: 1 }])
  store.failure = new Error('no space is left')
  await assert.rejects(ctx.sessions.flush(session), store.failure)
  // More than a call may have arguments.
  for (let turn = 2; turn < 130_000; turn += 1) session.append('turn/start', { turn })
  await assert.rejects(ctx.sessions.flush(session), store.failure)
  store.failure = undefined
  await ctx.sessions.flush(session)
  assert.equal(store.events(id).length, session.length)
  assert.deepEqual(store.events(id).at(-1), session.at(session.length - 1))
  await stop()
})

test('a store that cannot store everything is closed all the same, and all it failed at is told', async () => {
  const store = new MemoryStore()
  let closed = 0
  const place = placeWith(store, () => ({
    close: async () => {
      closed += 1
      throw new Error('nor closed')
    },
  }))
  const { ctx, stop } = await startProgram(place)
  for (const each of ['a', 'b']) append(ctx.sessions.create(SessionId(each)), ...turnOf(each))
  store.failure = new Error('no space is left')
  const failures = await stop().then(() => [], errorsIn)
  assert.equal(closed, 1)
  assert.deepEqual(
    failures.map(({ message }) => message),
    ['no space is left', 'no space is left'],
  )
})

test('a store that cannot be closed says so where all is stored', async () => {
  const store = new MemoryStore()
  const place = placeWith(store, () => ({ close: () => Promise.reject(new Error('not closed')) }))
  const { ctx, stop } = await startProgram(place)
  append(ctx.sessions.create(id), ...turnOf('a'))
  const failures = await stop().then(() => [], errorsIn)
  assert.deepEqual(
    failures.map(({ message }) => message),
    ['not closed'],
  )
  assert.equal(store.events(id).length, 6)
})

/** The innermost errors, in order. */
function errorsIn(error: unknown): Error[] {
  if (error instanceof AggregateError) return error.errors.flatMap(errorsIn)
  return [error as Error]
}

test('what crashed programs left and cannot be removed is told, once, and stops nothing', async () => {
  const store = new MemoryStore()
  const place = placeWith(store, () => ({ sweep: () => Promise.reject(new Error('permission is denied')) }))
  const { ctx, clock, notices, stop } = await startProgram(place)
  clock.sweep()
  await settled()
  assert.deepEqual(notices, [
    {
      code: 'SWEEP_FAILED',
      message: 'memory could not remove what crashed programs left: permission is denied',
    },
  ])
  const session = ctx.sessions.create(id)
  append(session, ...turnOf('a'))
  await ctx.sessions.flush(session)
  await stop()
})

test('damage that is seen while the log changes is looked at again', async () => {
  const store = new MemoryStore()
  const writer = store.open().begin(headerOf('s1'))
  await writer.append(logOf(...turnOf('a')))
  await writer.close()
  let reads = 0
  const place = placeWith(store, inner => ({
    async read(each, options) {
      const log = await inner.read(each, options)
      reads += 1
      if (log === undefined || reads > 2) return log
      const gap = { fromSeq: 2, toSeq: 5, bytes: 1, reason: 'it was being written', events: [] }
      return { ...log, events: log.events.slice(0, 2), gaps: [gap], revision: `earlier ${reads}` }
    },
  }))
  const { ctx, stop } = await startProgram(place)
  const view = await ctx.sessionPersistence.inspect(id)
  assert.deepEqual([view.events.length, view.gaps], [6, undefined])
  assert.equal(reads, 3)
  await stop()
})

test('a log without a readable beginning that changes faster than it is read is not called damaged', async () => {
  const store = new MemoryStore()
  let writes = 0
  let reads = 0
  const damaged = new PersistenceError('SESSION_DAMAGED', 'its header is cut')
  const isQuiet = (): boolean => reads > 100
  const place = placeWith(store, () => ({
    read: async () => {
      reads += 1
      throw damaged
    },
    revision: async () => String(isQuiet() ? writes : (writes += 1)),
  }))
  const { ctx, stop } = await startProgram(place)
  await assert.rejects(ctx.sessionPersistence.inspect(id), { code: 'LOG_CHANGING', cause: damaged })
  assert.equal(reads, 5)
  reads = 100
  await assert.rejects(ctx.sessionPersistence.inspect(id), damaged)
  assert.equal(reads, 102)
  await stop()
})
