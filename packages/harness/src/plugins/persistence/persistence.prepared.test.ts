import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { logOf, MemoryStore } from '../../testing/index.ts'
import { append, startProgram } from '../../testing/contracts/store-program.ts'
import type { StoreProgram } from '../../testing/contracts/store-program.ts'
import { headerOf, turnOf } from '../../testing/contracts/store-samples.ts'

const id = SessionId('s1')

async function setup(...ids: readonly string[]): Promise<{ store: MemoryStore; program: StoreProgram }> {
  const store = new MemoryStore()
  for (const each of ids) await write(store, each, logOf(...turnOf('a')))
  return { store, program: await startProgram(store) }
}

async function write(store: MemoryStore, each: string, events: readonly SessionEvent[]): Promise<void> {
  const writer = store.open().begin(headerOf(each))
  await writer.append(events)
  await writer.close()
}

async function settled(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await new Promise(resolve => setImmediate(resolve))
}

test('a prepared session that is given back untouched is the next one, unread', async () => {
  const { store, program } = await setup('s1')
  const { sessionPersistence } = program.ctx
  const first = await sessionPersistence.prepare(id)
  const { reads } = store
  first[Symbol.dispose]()
  const second = await sessionPersistence.prepare(id)
  assert.equal(second.session, first.session)
  assert.equal(store.reads, reads)
  await assert.rejects(store.open().resume(id), { code: 'SESSION_HELD' })
  second[Symbol.dispose]()
  await settled()
  const { writer } = await store.open().resume(id)
  await writer.close()
  await program.stop()
})

test('what was loaded is there when it is prepared', async () => {
  const { store, program } = await setup('s1')
  const { sessionPersistence } = program.ctx
  const { events } = await sessionPersistence.load(id)
  const { reads } = store
  const { session } = await sessionPersistence.prepare(id)
  assert.equal(session.at(0), events[0])
  assert.equal(store.reads, reads)
  await program.stop()
})

test('a prepared session is published once, from wherever it came', async () => {
  const { store, program } = await setup('s1')
  const { ctx } = program
  const first = await ctx.sessionPersistence.prepare(id)
  first[Symbol.dispose]()
  const { session } = await ctx.sessionPersistence.prepare(id)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  append(session, ...turnOf('b', 2))
  await ctx.sessions.flush(session)
  assert.deepEqual(store.events(id), session.events)
  leave()
  await ctx.sessionPersistence.inspect(id)
  const { session: next } = await ctx.sessionPersistence.prepare(id)
  assert.notEqual(next, session)
  assert.equal(next.length, 13 + 1)
  await program.stop()
})

test('a session is read again where its log has changed meanwhile', async () => {
  const { store, program } = await setup('s1')
  const { sessionPersistence } = program.ctx
  const first = await sessionPersistence.prepare(id)
  first[Symbol.dispose]()
  await settled()
  const more = logOf(...turnOf('a'), ...turnOf('b', 2)).slice(6)
  const { writer } = await store.open().resume(id)
  await writer.append(more)
  await writer.close()
  const second = await sessionPersistence.prepare(id)
  assert.notEqual(second.session, first.session)
  assert.equal(second.session.length, 13)
  second[Symbol.dispose]()
  await sessionPersistence.append(id, logOf(...turnOf('a'), ...turnOf('b', 2), ...turnOf('c', 3)).slice(12))
  const third = await sessionPersistence.prepare(id)
  assert.equal(third.session.length, 19)
  third[Symbol.dispose]()
  await sessionPersistence.remove(id)
  await write(store, 's1', logOf(...turnOf('other')))
  const fourth = await sessionPersistence.prepare(id)
  assert.equal(fourth.session.length, 7)
  await program.stop()
})

test('a session that somebody touched before giving it back is read again', async () => {
  const { program } = await setup('s1')
  const { sessionPersistence } = program.ctx
  const first = await sessionPersistence.prepare(id)
  append(first.session, ['turn/start', { turn: 2 }])
  first[Symbol.dispose]()
  const second = await sessionPersistence.prepare(id)
  assert.notEqual(second.session, first.session)
  second[Symbol.dispose]()
  await settled()
  append(second.session, ['turn/start', { turn: 2 }])
  const third = await sessionPersistence.prepare(id)
  assert.notEqual(third.session, second.session)
  assert.equal(third.session.length, 7)
  await program.stop()
})

test('a session whose log had to be repaired is read again', async () => {
  const store = new MemoryStore()
  await write(store, 's1', logOf(['turn/start', { turn: 1 }]))
  const program = await startProgram(store)
  const first = await program.ctx.sessionPersistence.prepare(id)
  first[Symbol.dispose]()
  const second = await program.ctx.sessionPersistence.prepare(id)
  assert.notEqual(second.session, first.session)
  assert.deepEqual(second.session.events.slice(0, 2), first.session.events.slice(0, 2))
  assert.deepEqual(store.events(id), second.session.events.slice(0, 2))
  await program.stop()
})

test('a session is read again where other event types are known than before', async () => {
  const { program } = await setup('s1')
  const { ctx } = program
  const first = await ctx.sessionPersistence.prepare(id)
  first[Symbol.dispose]()
  const forget = ctx.sessions.registerEventType({ type: 'x/new' as 'turn/start' })
  const second = await ctx.sessionPersistence.prepare(id)
  assert.notEqual(second.session, first.session)
  second[Symbol.dispose]()
  forget()
  const third = await ctx.sessionPersistence.prepare(id)
  assert.notEqual(third.session, second.session)
  await program.stop()
})

test('the five that were given back last are kept', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const { store, program } = await setup(...ids)
  for (const each of ids) {
    const preparation = await program.ctx.sessionPersistence.prepare(SessionId(each))
    preparation[Symbol.dispose]()
    await settled()
  }
  const { reads } = store
  for (const each of ids.slice(1)) await program.ctx.sessionPersistence.prepare(SessionId(each))
  assert.equal(store.reads, reads)
  await program.ctx.sessionPersistence.prepare(SessionId('a'))
  assert.equal(store.reads, reads + 1)
  await program.stop()
})

test('a session that another program opened in between is held, and prepared anew once it is free', async () => {
  const { store, program } = await setup('s1')
  const first = await program.ctx.sessionPersistence.prepare(id)
  first[Symbol.dispose]()
  await settled()
  const { writer } = await store.open().resume(id)
  await assert.rejects(program.ctx.sessionPersistence.prepare(id), { code: 'SESSION_HELD' })
  await writer.close()
  const second = await program.ctx.sessionPersistence.prepare(id)
  assert.equal(second.session.length, 7)
  await program.stop()
})

test('events that are given while a session is being prepared wait for that, and are refused once it is', async () => {
  const { store, program } = await setup('s1')
  const { sessionPersistence } = program.ctx
  const more = logOf(...turnOf('a'), ...turnOf('b', 2)).slice(6)
  const preparing = sessionPersistence.prepare(id)
  const refused = assert.rejects(sessionPersistence.append(id, more), { code: 'SESSION_LIVE' })
  await preparing
  await refused
  assert.equal(store.events(id).length, 6)
  await program.stop()
})

test('events that are given while a preparation is called off are stored', async () => {
  const { store, program } = await setup('s1')
  const { sessionPersistence } = program.ctx
  const more = logOf(...turnOf('a'), ...turnOf('b', 2)).slice(6)
  const controller = new AbortController()
  const reason = new Error('changed my mind')
  const preparing = assert.rejects(sessionPersistence.prepare(id, controller.signal), reason)
  const appending = sessionPersistence.append(id, more)
  controller.abort(reason)
  await preparing
  await appending
  assert.equal(store.events(id).length, 12)
  await program.stop()
})
