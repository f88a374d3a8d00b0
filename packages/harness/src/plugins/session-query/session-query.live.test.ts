import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { answerFact, userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { brokenRow, found, openLibrary } from './test-library.ts'

const prompt = (text: string): Draft => ['user/message', userFact(text)]
const onSurface = { surfaceOp: 'append' } as const

test('what a live session has not saved yet is found, and only once when it is saved', async t => {
  const { ctx, query, live, store, streamed } = await openLibrary(t)
  const { session, leave } = live('s')
  session.append('user/message', userFact('pear'), onSurface)
  assert.deepEqual(store.events(session.id), [])
  assert.deepEqual(await found(query, 'pear'), { s: [0] })
  session.append('assistant/message', answerFact('pear too'), onSurface)
  await ctx.sessions.flush(session)
  assert.deepEqual(await found(query, 'pear'), { s: [0, 1] })
  assert.deepEqual(streamed(), [])
  await leave()
  assert.deepEqual(await found(query, 'pear'), { s: [0, 1] })
  assert.deepEqual(streamed(), ['s from 0'])
})

test('a live session shows what it has, and what a summary hides as hidden', async t => {
  const { query, live } = await openLibrary(t)
  const { session } = live('s', { cwd: '/srv/a' })
  session.append('turn/start', { turn: 1 })
  session.append('user/message', userFact('pear one'), onSurface)
  await found(query, 'pear')
  const summary = { surfaceOp: { op: 'replace', start: 1, end: 1 }, sourceEventSeqs: [1] } as const
  session.append('user/message', userFact('pear two'), summary)
  const { hits, record } = await query.searchEvents({ sessionId: session.id, query: 'pear' })
  assert.deepEqual(
    hits.map(({ seq, surface }) => [seq, surface]),
    [
      [2, 'current'],
      [1, 'shadowed'],
    ],
  )
  assert.deepEqual([record.live, record.persisted], [true, false])
  const { rows } = await query.overview()
  const [row] = rows
  assert.ok(row !== undefined && 'summary' in row)
  assert.deepEqual(
    [row.live, row.isPartial, row.summary?.title, row.summary?.turns],
    [true, false, 'pear one', 1],
  )
})

test('a session that is resumed while its stored log is read gives the live one', async t => {
  const gate = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const { ctx, query, put } = await openLibrary(t, {
    medium: medium => ({
      ...medium,
      async read(id, options) {
        const log = await medium.read(id, options)
        reached.resolve()
        await gate.promise
        return log
      },
    }),
  })
  const id = await put('s', [prompt('stored')])
  const asked = query.readSession(id)
  await reached.promise
  const preparation = await ctx.sessionPersistence.prepare(id)
  ctx.sessions.enter(preparation.session)
  ctx.sessions.announce(preparation.session)
  preparation.session.append('user/message', userFact('live'), onSurface)
  gate.resolve()
  const { record, events } = await asked
  assert.equal(record.live, true)
  assert.equal(events.at(-1), preparation.session.at(preparation.session.length - 1))
})

test('a live session is never looked up in the store', async t => {
  const { query, live, inspected } = await openLibrary(t, {
    medium: medium => ({ ...medium, list: () => Promise.reject(new Error('asked')) }),
  })
  const { session } = live('s')
  session.append('user/message', userFact('pear'), onSurface)
  assert.equal((await query.listEvents(session.id)).length, 1)
  assert.equal(await query.readTitle(session.id), 'pear')
  assert.deepEqual(inspected(), 0)
  await assert.rejects(query.listSessions(), { code: 'SESSION_QUERY_PERSISTENCE_FAILED', message: /asked/ })
})

test('live and stored sessions with one id and different births are told apart', async t => {
  const { query, live } = await openLibrary(t, {
    medium: medium => ({
      ...medium,
      list: async () => [
        {
          id: SessionId('s'),
          header: { version: 0, id: SessionId('s'), createdAt: 1, cwd: '/srv/other' },
          updatedAt: 1,
          path: 'memory:s',
          revision: '1',
        },
      ],
    }),
  })
  const { session } = live('s', { cwd: '/srv/a' })
  session.append('user/message', userFact('pear'), onSurface)
  const problem = 'session "s" is live and stored with different facts of its birth'
  assert.deepEqual(await query.listSessions(), [{ id: 's', path: 'memory:s', problem }])
  assert.deepEqual((await query.searchSessions({ query: 'pear' })).left, [{ id: 's', reason: problem }])
})

const hostile = `\u001b[31mRed\u001b[0m\r\n\tand \u0007 more \u202e${'long '.repeat(100)}`

test('a title is one short line, whatever the prompt', async t => {
  const { query, put } = await openLibrary(t)
  await put('escapes', [prompt(hostile)])
  await put('huge', [prompt('你好 '.repeat(200_000))])
  await put('silent', [prompt(' \n '), prompt('at last')])
  await put('none', [['turn/start', { turn: 1 }]])
  const { rows } = await query.overview()
  const titles = Object.fromEntries(rows.map(row => [row.id, 'summary' in row ? row.summary?.title : 'x']))
  assert.deepEqual(Object.keys(titles), ['escapes', 'huge', 'silent', 'none'])
  assert.match(titles['escapes'] ?? '', /^Red and more (long ?)+…$/)
  assert.match(titles['huge'] ?? '', /^(你好 )+你?…$/)
  assert.deepEqual([titles['silent'], titles['none']], ['at last', undefined])
  for (const title of Object.values(titles)) assert.ok(Buffer.byteLength(title ?? '') <= 120)
})

test('a list shows the latest title, the model, turns, the last prompt, and who is archived', async t => {
  const { query, put, grow } = await openLibrary(t)
  const lately = (type: string, data: object): Draft => [type, data, { ignorable: true }] as unknown as Draft
  await put('s', [
    ['turn/start', { turn: 1 }],
    prompt('first'),
    ['request/header', { header: { config: { provider: 'p', model: 'm1' } }, reason: 'initial' }],
    lately('session/title', { title: 'One', messageSeqs: [1], source: { kind: 'fallback' } }),
  ])
  const summary = async () => {
    const [row] = (await query.overview({ withArchived: true })).rows
    return row !== undefined && 'summary' in row ? row.summary : undefined
  }
  const before = await summary()
  assert.deepEqual(before, {
    title: 'One',
    isTitled: false,
    firstPrompt: 'first',
    lastPromptAt: 1_700_000_000_001,
    turns: 1,
    model: 'p/m1',
    archived: false,
  })
  await grow('s', [
    ['turn/start', { turn: 2 }],
    prompt('second'),
    ['request/header', { header: { config: { provider: 'p', model: 'm2' } }, reason: 'change' }],
    lately('session/title', { title: 'Two', messageSeqs: [], source: { kind: 'user' } }),
    lately('session/archived', { archived: true }),
  ])
  assert.deepEqual(await summary(), {
    ...before,
    title: 'Two',
    isTitled: true,
    turns: 2,
    model: 'p/m2',
    archived: true,
  })
  const hidden = await query.overview()
  assert.deepEqual([hidden.rows, hidden.total], [[], 0])
  await grow('s', [lately('session/archived', { archived: false })])
  assert.equal((await query.overview()).total, 1)
  await grow('s', [lately('session/archived', { archived: true }), ['turn/start', { turn: 3 }]])
  assert.equal((await query.overview()).total, 1)
})

test('a first list reads the beginnings of what it shows, and says what it did not read to the end', async t => {
  const { query, put, streamed } = await openLibrary(t)
  const turns = Array.from({ length: 5 }, (_, at): Draft => ['turn/start', { turn: at + 2 }])
  for (const [at, id] of ['a', 'b', 'c'].entries())
    await put(id, [['turn/start', { turn: 1 }], prompt(`hello ${id}`), ...turns], { createdAt: at })
  const page = await query.overview({ limit: 2, budgetMs: 0 })
  const shown = (rows: typeof page.rows) =>
    rows.map(row =>
      'summary' in row ? [row.id, row.summary?.title, row.summary?.turns, row.isPartial] : row.id,
    )
  assert.deepEqual(shown(page.rows), [
    ['c', 'hello c', 1, true],
    ['b', 'hello b', 1, true],
  ])
  assert.deepEqual([page.total, streamed()], [3, ['c from 0', 'b from 0']])
  assert.deepEqual(shown((await query.overview({ limit: 2, budgetMs: 60_000 })).rows), [
    ['c', 'hello c', 6, false],
    ['b', 'hello b', 6, false],
  ])
  assert.deepEqual(streamed(), ['c from 1', 'b from 1'])
})

test('a list is of a folder, and ends with what cannot be read', async t => {
  const { query, put } = await openLibrary(t, {
    medium: medium => ({
      ...medium,
      list: async signal => [brokenRow('bad', 'this is no file'), ...(await medium.list(signal))],
    }),
  })
  await put('a', [prompt('a')], { cwd: '/srv/a' })
  await put('b', [prompt('b')], { cwd: '/srv/b' })
  const ids = async (request: object) => (await query.overview(request)).rows.map(({ id }) => id)
  assert.deepEqual(await ids({}), ['a', 'b', 'bad'])
  assert.deepEqual(await ids({ cwd: '/srv/b' }), ['b'])
})

test('the query goes with its plugin', async t => {
  const { ctx, query, put } = await openLibrary(t)
  await put('s', [prompt('pear')])
  await found(query, 'pear')
  await ctx.dispose()
  assert.equal(ctx.get('sessionQuery'), undefined)
})
