import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { SessionStore } from '../../core/session/index.ts'
import type { Session } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import { callFact, resultFact, say } from '../../testing/index.ts'
import { storeJsonl } from '../store-jsonl/index.ts'
import { sessionProjections } from './index.ts'
import type { ProjectionUnit } from './index.ts'
import { RowFiles } from './row-files.ts'

const id = SessionId('s')

async function setup(t: TestContext) {
  const home = await mkdtemp(join(tmpdir(), 'dsh-projections-'))
  const root = join(home, 'sessions')
  const folder = join(home, 'cache')
  const open = async () => {
    const ctx = new Context()
    await ctx.plugin(SessionStore)
    const store = ctx.plugin(storeJsonl, { root })
    await store
    const plugin = ctx.plugin(sessionProjections, { folder })
    await plugin
    return { ctx, store, plugin, cache: ctx.sessionProjectionCache, projections: ctx.sessionProjections }
  }
  const first = await open()
  t.after(async () => {
    await first.ctx.dispose()
    await rm(home, { recursive: true, force: true })
  })
  const fileOf = async () =>
    join(folder, (await readdir(folder)).find(name => name.endsWith('.json')) ?? 'none')
  return { ...first, open, root, folder, fileOf, recordOf: async () => readFile(await fileOf(), 'utf8') }
}

function sayTurn(session: Session, turn: number): void {
  session.append('turn/start', { turn })
  session.append('user/message', say(`question ${turn}`), { surfaceOp: 'append' })
  session.append('turn/end', { turn, reason: { kind: 'completed' } })
}

/** Runs until what was started has written its file. */
async function written(read: () => Promise<string>, isRight: (text: string) => boolean): Promise<string> {
  for (;;) {
    const text = await read().catch(() => '')
    if (isRight(text)) return text
    await new Promise(resolve => setImmediate(resolve))
  }
}

const seqOf = (text: string): unknown => (text === '' ? undefined : (JSON.parse(text) as { seq: number }).seq)

test('the values are stored after a turn, and are there for the next program without the log', async t => {
  const { ctx, projections, open, root, recordOf } = await setup(t)
  const session = ctx.sessions.create(id, { meta: { cwd: '/srv/app' } })
  sayTurn(session, 1)
  await written(recordOf, text => seqOf(text) === 2)
  const expected = projections.snapshot(session)
  await ctx.dispose()
  await rm(root, { recursive: true })
  const next = await open()
  assert.deepEqual(await next.cache.cachedSnapshot(session.header), expected)
  assert.equal(await next.cache.cachedSnapshot({ ...session.header, createdAt: 1 }), undefined)
  assert.equal(await next.cache.cachedSnapshot({ ...session.header, cwd: '/srv/other' }), undefined)
  await next.ctx.dispose()
})

test('values stored at any event are brought up to the end of the log', async t => {
  const { ctx, cache, projections, open } = await setup(t)
  const session = ctx.sessions.create(id)
  for (const turn of [1, 2, 3]) sayTurn(session, turn)
  const { header } = session
  const expected = projections.snapshot(session)
  await ctx.sessions.flush(session)
  const reader = await open()
  for (let length = 0; length <= session.length; length++) {
    await cache.storeAt(session, length)
    assert.deepEqual(await reader.cache.coldSnapshot({ header }), expected, `stored at ${length}`)
    assert.deepEqual(await reader.cache.cachedSnapshot(header), expected)
  }
  await reader.ctx.dispose()
})

test('what tools print is no part of what is stored, however much it is', async t => {
  const { ctx, cache, recordOf } = await setup(t)
  const session = ctx.sessions.create(id)
  for (let turn = 1; turn <= 20; turn++) {
    session.append('turn/start', { turn })
    session.append('tool/call', { ...callFact(`${turn}`, { turn }), arguments: '"x"'.repeat(10_000) })
    session.append('tool/result', resultFact(`${turn}`, 'x'.repeat(200_000), { turn }), {
      surfaceOp: 'append',
    })
    session.append('turn/end', { turn, reason: { kind: 'completed' } })
  }
  await cache.write(session)
  const text = await recordOf()
  assert.equal(seqOf(text), session.length - 1)
  assert.ok(text.length < 4096, `${text.length} bytes`)
})

test('nothing is stored that the log does not have', async t => {
  const { ctx, cache, folder } = await setup(t)
  const session = ctx.sessions.create(id)
  ctx.on('session/flush', () => Promise.reject(new Error('disk full')))
  session.append('turn/start', { turn: 1 })
  await assert.rejects(cache.write(session), /disk full/)
  await assert.rejects(readdir(folder), { code: 'ENOENT' })
})

test('a session without a store has no stored values', async t => {
  const { ctx, cache, store, folder } = await setup(t)
  await store.dispose()
  const session = ctx.sessions.create(id)
  session.append('turn/start', { turn: 1 })
  await cache.write(session)
  await assert.rejects(readdir(folder), { code: 'ENOENT' })
})

test('values of a longer log, or of another one, are worked out anew', async t => {
  const { ctx, cache, projections, open, fileOf, recordOf } = await setup(t)
  const session = ctx.sessions.create(id)
  sayTurn(session, 1)
  await written(recordOf, text => seqOf(text) === 2)
  const { header } = session
  const expected = projections.snapshot(session)
  const record = JSON.parse(await recordOf()) as { rows: { turn: { val: object } } }
  const lie = { ...record.rows, turn: { ver: 1, val: { openTurn: 7, openStep: null, lastTurn: 7 } } }
  const reader = await open()
  for (const change of [{ seq: 3 }, { seq: 9 }, { time: 1 }]) {
    await writeFile(await fileOf(), JSON.stringify({ ...record, rows: lie, ...change }))
    assert.deepEqual(await reader.cache.coldSnapshot({ header }), expected)
    assert.equal(seqOf(await recordOf()), 2)
  }
  await reader.ctx.dispose()
  void cache
})

test('a state of another version, of no form or of no unit is worked out anew', async t => {
  const { ctx, projections, open, fileOf, recordOf } = await setup(t)
  const session = ctx.sessions.create(id)
  sayTurn(session, 1)
  await written(recordOf, text => seqOf(text) === 2)
  const { header } = session
  const expected = projections.snapshot(session)
  const record = JSON.parse(await recordOf()) as { rows: Record<string, { ver: number; val: unknown }> }
  const { turn, ...others } = record.rows
  const reader = await open()
  for (const rows of [
    others,
    { ...others, turn: { ...turn, ver: 0 } },
    { ...others, turn: { ver: 1, val: { lastTurn: 'one' } } },
    { ...others, turn: { ver: '1', val: null } },
  ]) {
    await writeFile(await fileOf(), JSON.stringify({ ...record, rows }))
    assert.deepEqual(await reader.cache.coldSnapshot({ header }), expected)
    assert.deepEqual(
      Object.keys((JSON.parse(await recordOf()) as typeof record).rows),
      Object.keys(record.rows),
    )
  }
  await reader.ctx.dispose()
})

test('a file that is broken, or far too big, is not read and is replaced', async t => {
  const { ctx, projections, open, fileOf, recordOf } = await setup(t)
  const session = ctx.sessions.create(id)
  sayTurn(session, 1)
  await written(recordOf, text => seqOf(text) === 2)
  const { header } = session
  const expected = projections.snapshot(session)
  const reader = await open()
  for (const text of ['', 'no JSON', 'null', '[]', '{"format":1}', '{"format":2}']) {
    await writeFile(await fileOf(), text)
    assert.equal(await reader.cache.cachedSnapshot(header), undefined)
    assert.deepEqual(await reader.cache.coldSnapshot({ header }), expected)
    assert.equal(seqOf(await recordOf()), 2)
  }
  await truncate(await fileOf(), 500_000_000)
  assert.equal(await reader.cache.cachedSnapshot(header), undefined)
  assert.deepEqual(await reader.cache.coldSnapshot({ header }), expected)
  assert.equal(seqOf(await recordOf()), 2)
  await reader.ctx.dispose()
})

test('a log whose mark is the same is not read', async t => {
  const { ctx, open, root } = await setup(t)
  const session = ctx.sessions.create(id)
  sayTurn(session, 1)
  await ctx.dispose()
  const reader = await open()
  const [snapshot] = await reader.ctx.sessionPersistence.listSnapshots()
  assert.ok(snapshot !== undefined)
  const expected = await reader.cache.coldSnapshot(snapshot)
  assert.equal(expected.asOfSeq, 2)
  await rm(root, { recursive: true })
  assert.deepEqual(await reader.cache.coldSnapshot(snapshot), expected)
  await assert.rejects(reader.cache.coldSnapshot({ ...snapshot, revision: 'other' }), {
    code: 'SESSION_NOT_FOUND',
  })
  await reader.ctx.dispose()
})

test('an event that its plugin refuses counts cold as it does live: for nobody', async t => {
  const { ctx, open } = await setup(t)
  const noted: ProjectionUnit<number, never> = {
    key: 'noted',
    stateVersion: 0,
    fold: { name: 'noted', types: ['test/note' as never], init: () => 0, apply: state => state + 1 },
    isState: (value): value is number => typeof value === 'number',
  }
  const session = ctx.sessions.create(id)
  const append = session.append.bind(session) as (type: string, data: unknown) => SessionEvent
  append('test/note', { text: 'right' })
  append('test/note', { text: 7 })
  await ctx.dispose()
  const { ctx: reader, cache, projections } = await open()
  reader.sessions.registerEventType({
    type: 'test/note' as never,
    ignorable: true,
    validate(data) {
      if (typeof (data as { text: unknown }).text !== 'string') throw new TypeError('no text')
    },
  })
  projections.register(noted)
  const cold = await cache.coldSnapshot({ header: session.header })
  const view = await reader.sessionPersistence.view(id)
  assert.equal(cold.values['noted'], 1)
  assert.equal(projections.snapshot(view).values['noted'], 1)
  await reader.dispose()
})

test('a long turn is stored every 200 events, and after 5 seconds', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const { ctx, recordOf } = await setup(t)
  const session = ctx.sessions.create(id)
  for (let step = 1; step <= 199; step++) session.append('step/start', { turn: 1, step })
  await assert.rejects(recordOf())
  session.append('step/start', { turn: 1, step: 200 })
  await written(recordOf, text => seqOf(text) === 199)
  session.append('step/end', { turn: 1, step: 200 })
  mock.timers.tick(4999)
  assert.equal(seqOf(await recordOf()), 199)
  mock.timers.tick(1)
  await written(recordOf, text => seqOf(text) === 200)
})

test('what a session had at its end is stored, once its log is', async t => {
  const { ctx, recordOf } = await setup(t)
  const leave = ctx.sessions.enter(ctx.sessions.prepare(id))
  const session = ctx.sessions.get(id)
  assert.ok(session !== undefined)
  ctx.sessions.announce(session)
  session.append('turn/start', { turn: 1 })
  leave()
  await written(recordOf, text => seqOf(text) === 0)
  assert.equal((await ctx.sessionPersistence.readFrom(id, 0)).events.length, 1)
})

test('the plugin waits for what it has not stored', async t => {
  const { ctx, plugin, recordOf } = await setup(t)
  const session = ctx.sessions.create(id)
  session.append('turn/start', { turn: 1 })
  await plugin.dispose()
  assert.equal(seqOf(await recordOf()), 0)
  assert.equal(ctx.get('sessionProjectionCache'), undefined)
})

test('values that are too long are not kept, nor are older ones', async t => {
  const { folder } = await setup(t)
  const files = new RowFiles(folder, { maxBytes: 10, maxFiles: 10 })
  await files.write(id, '0123456789')
  assert.equal(await files.read(id), '0123456789')
  await files.write(id, '01234567890')
  assert.equal(await files.read(id), undefined)
  assert.deepEqual(await readdir(folder), [])
})

test('the oldest files go where there are too many, and those of sessions that are gone', async t => {
  const { folder } = await setup(t)
  const files = new RowFiles(folder, { maxBytes: 10, maxFiles: 2 })
  for (const [at, name] of ['a', 'b', 'c'].entries()) {
    await files.write(SessionId(name), name)
    for (const file of await readdir(folder)) {
      const path = join(folder, file)
      if ((await readFile(path, 'utf8')) === name) await utimes(path, 1000 + at, 1000 + at)
    }
  }
  await writeFile(join(folder, 'broken-off.tmp'), '')
  await utimes(join(folder, 'broken-off.tmp'), 1, 1)
  await files.sweep()
  const read = async (...names: string[]) => Promise.all(names.map(name => files.read(SessionId(name))))
  assert.deepEqual(await read('a', 'b', 'c'), [undefined, 'b', 'c'])
  assert.equal((await readdir(folder)).length, 2)
  await files.retain([SessionId('b')])
  assert.deepEqual(await read('a', 'b', 'c'), [undefined, 'b', undefined])
  await files.forget(SessionId('b'))
  await files.forget(SessionId('b'))
  assert.deepEqual(await readdir(folder), [])
})
