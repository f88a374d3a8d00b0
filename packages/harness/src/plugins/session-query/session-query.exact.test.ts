import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { answerFact, callFact, resultFact, userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import type { LineageNode } from './index.ts'
import { brokenRow, openLibrary } from './test-library.ts'

const prompt = (text: string): Draft => ['user/message', userFact(text)]

const replaced: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  prompt('one'),
  ['assistant/message', answerFact('two', ['c'])],
  ['tool/call', callFact('c')],
  ['tool/result', resultFact('c', 'long  result'), { sourceEventSeqs: [3] }],
  [
    'tool/result',
    resultFact('c', 'short'),
    { surfaceOp: { op: 'replace', start: 4, end: 4 }, sourceEventSeqs: [4] },
  ],
  [
    'user/message',
    userFact('summary'),
    { surfaceOp: { op: 'replace', start: 1, end: 5 }, sourceEventSeqs: [1, 2, 5] },
  ],
]

test('events are read with their place in what the model sees', async t => {
  const { query, put } = await openLibrary(t)
  const id = await put('s', replaced)
  assert.deepEqual(
    (await query.listEvents(id)).map(({ surface }) => surface),
    ['log-only', 'shadowed', 'shadowed', 'log-only', 'shadowed', 'shadowed', 'current'].concat('log-only'),
  )
  assert.deepEqual(
    (await query.readSurface(id)).map(({ seq }) => seq),
    [6],
  )
  const seqs = async (...filters: Parameters<typeof query.filterEvents>[1][number][]) =>
    (await query.filterEvents(id, filters)).map(({ event }) => event.seq)
  assert.deepEqual(await seqs({ kind: 'type', values: ['tool/result'] }, { kind: 'seq', from: 5 }), [5])
  assert.deepEqual(await seqs({ kind: 'text', value: 'LONG result' }), [4])
  assert.deepEqual(await seqs({ kind: 'text', value: 'l.ng' }), [])
  assert.deepEqual(await seqs({ kind: 'type', values: [] }), [])
  await assert.rejects(seqs({ kind: 'text', value: ' ' }), { code: 'SESSION_QUERY_INVALID_FILTER' })
})

test('an event tells what it stands on, what stands on it, and what stands in its place', async t => {
  const { query, put } = await openLibrary(t)
  const sessionId = await put('s', replaced)
  const { event: _, ...trace } = await query.traceEvent({ sessionId, seq: 4 })
  assert.deepEqual(trace, {
    surface: 'shadowed',
    replacedBy: 5,
    replacementChain: [5, 6],
    replacedEventSeqs: [],
    sourceEventSeqs: [3],
    derivedEventSeqs: [5],
  })
  const { replacedEventSeqs, surface } = await query.traceEvent({ sessionId, seq: 6 })
  assert.deepEqual([replacedEventSeqs, surface], [[1, 2, 5], 'current'])
  await assert.rejects(query.traceEvent({ sessionId, seq: 99 }), {
    code: 'SESSION_QUERY_EVENT_NOT_FOUND',
    message: 'session "s" has no event 99',
  })
})

test('an event is read with its neighbours, of which there is a most', async t => {
  const { query, put } = await openLibrary(t, { config: { readWindowMax: 3 } })
  const sessionId = await put('s', replaced)
  const { target, before, after } = await query.readEvent({ sessionId, seq: 1, before: 3, after: 1 })
  assert.deepEqual(
    [before.map(({ event }) => event.seq), target.event.seq, after.map(({ event }) => event.seq)],
    [[0], 1, [2]],
  )
  await assert.rejects(query.readEvent({ sessionId, seq: 1, before: 4 }), {
    code: 'SESSION_QUERY_INVALID_WINDOW',
    message: 'before is 4, expected 0 to 3 events',
  })
  await assert.rejects(query.readEvent({ sessionId: SessionId('none'), seq: 1 }), {
    code: 'SESSION_QUERY_SESSION_NOT_FOUND',
  })
})

function outline(nodes: readonly LineageNode[]): unknown {
  return nodes.map(({ record, children }) => [record.id, outline(children)])
}

test('a session knows its ancestors and everything that was forked from it', async t => {
  const { query, put } = await openLibrary(t)
  const from = (parent: string, createdAt: number) => ({ parentSession: SessionId(parent), createdAt })
  await put('root', [prompt('x')], { createdAt: 1 })
  await put('b', [prompt('x')], from('root', 3))
  await put('a', [prompt('x')], from('root', 2))
  await put('leaf', [prompt('x')], from('a', 4))
  await put('orphan', [prompt('x')], from('gone', 5))
  const root = await query.traceSession(SessionId('root'))
  assert.deepEqual(outline(root.descendants), [
    ['a', [['leaf', []]]],
    ['b', []],
  ])
  const leaf = await query.traceSession(SessionId('leaf'))
  assert.deepEqual(
    [leaf.ancestors.map(({ id }) => id), leaf.origin],
    [['a', 'root'], { complete: true, root: 'root' }],
  )
  assert.deepEqual((await query.traceSession(SessionId('orphan'))).origin, {
    complete: false,
    unresolvedParentId: 'gone',
  })
  assert.deepEqual(
    (await query.filterSessions([{ kind: 'parent', values: [SessionId('root'), null] }])).map(({ id }) => id),
    ['b', 'a', 'root'],
  )
})

test('a line of forks as long as it likes is followed, and one that bites its tail is refused', async t => {
  const { query, put } = await openLibrary(t)
  for (let index = 0; index < 300; index++)
    await put(`s${index}`, [prompt('x')], index === 0 ? {} : { parentSession: SessionId(`s${index - 1}`) })
  assert.equal((await query.traceSession(SessionId('s299'))).ancestors.length, 299)
  await put('x', [prompt('x')], { parentSession: SessionId('y') })
  await put('y', [prompt('x')], { parentSession: SessionId('x') })
  await assert.rejects(query.traceSession(SessionId('x')), { code: 'SESSION_QUERY_INVALID_LINEAGE' })
})

test('titles of many sessions come in order, and one that fails leaves the others alone', async t => {
  const { query, put } = await openLibrary(t)
  const ids = [await put('a', [prompt('first')]), SessionId('none'), await put('b', [prompt('second')])]
  const settled = await query.readTitleSnapshots(ids)
  assert.deepEqual(
    settled.map(each =>
      each.status === 'fulfilled' ? each.value?.title : (each.reason as { code: string }).code,
    ),
    ['first', 'SESSION_QUERY_SESSION_NOT_FOUND', 'second'],
  )
})

test('what is damaged says so with its own code', async t => {
  const { query } = await openLibrary(t, {
    medium: medium => ({
      ...medium,
      list: async () => [brokenRow('bad', 'this is no file')],
      read: () => Promise.reject(Object.assign(new Error('no header'), { code: 'SESSION_DAMAGED' })),
    }),
  })
  await assert.rejects(query.readSession(SessionId('bad')), {
    code: 'SESSION_QUERY_CORRUPT_SESSION',
    message: 'session "bad" cannot be read: no header',
  })
})
