import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { answerFact, callFact, resultFact, userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { brokenRow, found, openLibrary } from './test-library.ts'

const prompt = (text: string): Draft => ['user/message', userFact(text)]
const answer = (text: string): Draft => ['assistant/message', answerFact(text)]

test('any piece of a text is found, in Chinese too, in whatever case', async t => {
  const { query, put } = await openLibrary(t)
  await put('zh', [prompt('请修复数据库连接池的测试'), answer('已经修好了')])
  await put('en', [prompt('Mend the ConnectionPool of the École'), answer('done')])
  assert.deepEqual(await found(query, '数据库连'), { zh: [0] })
  assert.deepEqual(await found(query, '连接池'), { zh: [0] })
  assert.deepEqual(await found(query, 'nectionpoo'), { en: [0] })
  assert.deepEqual(await found(query, 'éCOLE'), { en: [0] })
  assert.deepEqual(await found(query, 'the ÉCOLE'), { en: [0] })
  assert.deepEqual(await found(query, 'connection pool'), {})
})

test('queries of one and two characters find what holds them', async t => {
  const { query, put } = await openLibrary(t)
  await put('zh', [prompt('修复测试')])
  await put('en', [prompt('Éa x😀y'), answer('Ship it')])
  assert.deepEqual(await found(query, '测'), { zh: [0] })
  assert.deepEqual(await found(query, '测试'), { zh: [0] })
  assert.deepEqual(await found(query, 'éA'), { en: [0] })
  assert.deepEqual(await found(query, '😀'), { en: [0] })
  assert.deepEqual(await found(query, 'ſH'), { en: [1] })
  assert.deepEqual(await found(query, 'q'), {})
})

test('nothing in a query is an operator', async t => {
  const { query, put } = await openLibrary(t)
  const odd = [
    '"a" OR "b"',
    'NEAR(one two)',
    'x* AND -y',
    'text:col',
    '100%_done',
    'a\\b.c+?(d)[e]{f}^$|',
    "it's",
  ]
  for (const [index, text] of odd.entries()) await put(`s${index}`, [prompt(`before ${text} after`)])
  await put('plain', [prompt('a b one two x y text col 100 done its')])
  for (const [index, text] of odd.entries())
    assert.deepEqual(await found(query, text), { [`s${index}`]: [0] })
})

test('white space in a query stands for any white space, and composed letters are as good as whole ones', async t => {
  const { query, put } = await openLibrary(t)
  await put('s', [prompt('first line\r\n\t second  cafe\u0301')])
  assert.deepEqual(await found(query, '  line second '), { s: [0] })
  assert.deepEqual(await found(query, 'CAFÉ'), { s: [0] })
})

test('messages, calls, results, todos and failures are found; thoughts, streams and snapshots are not', async t => {
  const { query, put } = await openLibrary(t)
  const thought = answerFact('said it')
  const source = { kind: 'plugin', plugin: 'p', form: 'snapshot', sections: [] } as const
  const failure = { message: 'the needle broke', code: 'RATE_LIMIT' }
  await put('s', [
    ['turn/start', { turn: 1 }],
    prompt('needle in a prompt'),
    ['user/message', { ...userFact('needle in a snapshot', 'm2'), source }],
    [
      'assistant/chunk',
      { turn: 1, step: 1, chunk: { type: 'text-delta', index: 0, text: 'needle in a chunk' } },
    ],
    [
      'assistant/message',
      {
        ...thought,
        message: { ...thought.message, content: [{ type: 'reasoning', text: 'needle in a thought' }] },
      },
    ],
    ['tool/call', { ...callFact('c'), arguments: '{"path":"needle.txt"}' }],
    ['tool/result', resultFact('c', 'a needle', { error: { name: 'E', code: 'E_CODE' } })],
    ['todo/write', { todos: [{ content: 'find the needle', status: 'pending' }] }],
    ['turn/end', { turn: 1, reason: { kind: 'error', error: failure } }],
  ])
  assert.deepEqual((await found(query, 'needle'))['s']?.toSorted(), [1, 5, 6, 7, 8])
  assert.deepEqual(await found(query, 'e_code'), { s: [6] })
  assert.deepEqual(await found(query, 'rate_limit'), { s: [8] })
})

test('a title that somebody gave is found whole, and one made of the first prompt is not found twice', async t => {
  const { query, put } = await openLibrary(t)
  const title = (text: string, kind: string): Draft =>
    ['session/title', { title: text, messageSeqs: [], source: { kind } }] as unknown as Draft
  const long = `Mend it ${'x'.repeat(200)} second line`
  await put('s', [prompt('find the needle'), title('find the needle', 'fallback'), title(long, 'user')])
  await put('odd', [prompt('x'), ['session/title', { title: 7 }] as unknown as Draft])
  assert.deepEqual(await found(query, 'the needle'), { s: [0] })
  assert.deepEqual(await found(query, 'second line'), { s: [2] })
})

test('a prompt that was blocked is found at the end of its turn', async t => {
  const { query, put } = await openLibrary(t)
  const insert = (text: string, start: number): Draft => [
    'agent/inbox/spliced',
    { target: 'next-turn', start, inserted: [userFact(text)] },
  ]
  await put('s', [
    insert('drop the tables', 0),
    insert('something else', 1),
    ['turn/start', { turn: 1 }],
    ['agent/inbox/spliced', { target: 'next-turn', start: 0, removedCount: 1, inserted: [] }],
    ['turn/end', { turn: 1, reason: { kind: 'blocked' } }],
  ])
  assert.deepEqual(await found(query, 'the tables'), { s: [4] })
  assert.deepEqual(await found(query, 'something else'), {})
})

test('what holds the text most often comes first, then the shorter, the newer', async t => {
  const { query, put } = await openLibrary(t)
  await put('long', [prompt('pear and many other words around it')])
  await put('twice', [answer('a pear'), answer('pear pear')])
  await put('short', [prompt('pear'), prompt('nothing')])
  const { sessions } = await query.searchSessions({ query: 'PEAR', hitsPerSession: 2 })
  assert.deepEqual(
    sessions.map(({ record, title, matched, hits }) => [
      record.id,
      title,
      matched,
      hits.map(({ seq, matches }) => [seq, matches]),
    ]),
    [
      [
        'twice',
        undefined,
        2,
        [
          [1, 2],
          [0, 1],
        ],
      ],
      ['short', 'pear', 1, [[0, 1]]],
      ['long', 'pear and many other words around it', 1, [[0, 1]]],
    ],
  )
})

test('a hit shows its surroundings with each place marked, in whole characters', async t => {
  const { query, put } = await openLibrary(t, { config: { snippetChars: 70 } })
  await put('s', [prompt(`${'😀'.repeat(100)} Pear, peAR ${'你'.repeat(100)}`), answer('a pear')])
  const { hits } = await query.searchEvents({ sessionId: SessionId('s'), query: 'pear' })
  assert.deepEqual(
    hits.map(({ snippet: { text, marks } }) => [text, marks.map(([from, to]) => text.substring(from, to))]),
    [
      [`…${'😀'.repeat(59)} Pear, peAR…`, ['Pear', 'peAR']],
      ['a pear', ['pear']],
    ],
  )
})

test('filters say where to look, and an empty list matches nothing', async t => {
  const { query, put } = await openLibrary(t)
  await put('a', [prompt('pear one'), answer('pear two')], { cwd: '/srv/a', createdAt: 5 })
  await put('b', [prompt('pear three')], { parentSession: SessionId('a') })
  const ids = async (request: Omit<Parameters<typeof query.searchSessions>[0], 'query'>) =>
    (await query.searchSessions({ query: 'pear', hitsPerSession: 5, ...request })).sessions.map(
      ({ record, hits }) => `${record.id} ${hits.map(({ seq }) => seq).join()}`,
    )
  assert.deepEqual(await ids({ sessions: [{ kind: 'cwd', values: ['/srv/a'] }] }), ['a 1,0'])
  assert.deepEqual(await ids({ sessions: [{ kind: 'cwd', values: [null] }] }), ['b 0'])
  assert.deepEqual(await ids({ sessions: [{ kind: 'created-at', from: 5, to: 5 }] }), ['a 1,0'])
  assert.deepEqual(await ids({ sessions: [{ kind: 'parent', values: [SessionId('a')] }] }), ['b 0'])
  assert.deepEqual(await ids({ sessions: [{ kind: 'availability', values: ['live'] }] }), [])
  assert.deepEqual(await ids({ sessions: [{ kind: 'id', values: [] }] }), [])
  assert.deepEqual(await ids({ events: [{ kind: 'type', values: ['assistant/message'] }] }), ['a 1'])
  assert.deepEqual(await ids({ events: [{ kind: 'seq', from: 1 }] }), ['a 1'])
  assert.deepEqual(await ids({ events: [{ kind: 'time', to: 0 }] }), [])
  assert.deepEqual(await ids({ events: [{ kind: 'surface', values: ['log-only', 'shadowed'] }] }), [])
})

test('a question that means nothing is refused with its reason', async t => {
  const { query, put } = await openLibrary(t)
  await put('s', [prompt('pear')])
  const refused = (request: object, code: string, message: RegExp) =>
    assert.rejects(query.searchSessions({ query: 'pear', ...request }), {
      code: `SESSION_QUERY_${code}`,
      message,
    })
  await refused({ query: ' \n' }, 'INVALID_QUERY', /empty/)
  await refused({ query: 'a\0b' }, 'INVALID_QUERY', /NUL/)
  await refused({ query: 'x'.repeat(1001) }, 'INVALID_QUERY', /1001 characters/)
  await refused({ limit: 0 }, 'INVALID_LIMIT', /0/)
  await refused({ limit: 101 }, 'INVALID_LIMIT', /1 to 100/)
  await refused({ events: [{ kind: 'seq', from: 1.5 }] }, 'INVALID_FILTER', /1\.5/)
  await refused({ events: [{ kind: 'seq', from: 3, to: 2 }] }, 'INVALID_FILTER', /3 is behind 2/)
  await refused({ events: [{ kind: 'surface', values: ['gone'] }] }, 'INVALID_FILTER', /"gone"/)
  await refused({ sessions: [{ kind: 'colour', values: [] }] }, 'INVALID_FILTER', /no such filter/)
  const many = Array.from({ length: 14 }, () => ({ kind: 'seq' }) as const)
  assert.equal((await query.searchSessions({ query: 'pear', events: many })).sessions.length, 1)
  await refused({ events: [...many, ...many] }, 'INVALID_FILTER', /28 filters/)
  await assert.rejects(query.searchEvents({ query: 'pear', sessionId: SessionId('s'), events: many }), {
    code: 'SESSION_QUERY_INVALID_FILTER',
  })
  await assert.rejects(query.searchEvents({ query: 'pear', sessionId: SessionId('none') }), {
    code: 'SESSION_QUERY_SESSION_NOT_FOUND',
    message: 'there is no session "none"',
  })
})

test('pages follow each other without gaps, and a cursor of another time or question is refused', async t => {
  const { query, put, grow } = await openLibrary(t)
  for (const id of ['a', 'b', 'c']) await put(id, [prompt('pear'), prompt('a pear')])
  const page = (cursor?: string) =>
    query.searchSessions({ query: 'pear', limit: 2, ...(cursor === undefined ? {} : { cursor }) })
  const first = await page()
  const second = await page(first.nextCursor)
  assert.deepEqual(
    [...first.sessions, ...second.sessions].map(({ record }) => record.id),
    ['a', 'b', 'c'],
  )
  assert.equal(second.nextCursor, undefined)
  const cursor = first.nextCursor ?? ''
  await assert.rejects(query.searchSessions({ query: 'apple', limit: 2, cursor }), {
    code: 'SESSION_QUERY_INVALID_CURSOR',
  })
  await assert.rejects(page('nonsense'), { code: 'SESSION_QUERY_INVALID_CURSOR' })

  const within = { query: 'pear', sessionId: SessionId('a'), limit: 1 }
  const own = await query.searchEvents(within)
  await grow('c', [prompt('more')])
  await assert.rejects(page(cursor), { code: 'SESSION_QUERY_STALE_CURSOR' })
  const next = await query.searchEvents({ ...within, cursor: own.nextCursor ?? '' })
  assert.deepEqual([own.hits[0]?.seq, next.hits[0]?.seq, next.nextCursor], [0, 1, undefined])
  await grow('a', [prompt('more')])
  await assert.rejects(query.searchEvents({ ...within, cursor: own.nextCursor ?? '' }), {
    code: 'SESSION_QUERY_STALE_CURSOR',
  })
})

test('sessions that cannot be read are told of and hide no other', async t => {
  const { query, put } = await openLibrary(t, {
    medium: medium => ({
      ...medium,
      list: async signal => [brokenRow('bad', 'this is no file'), ...(await medium.list(signal))],
      stream: (id, options) => {
        if (id === 'torn') throw new Error('the disk is gone')
        return medium.stream?.(id, options) ?? []
      },
    }),
  })
  await put('good', [prompt('pear')])
  await put('torn', [prompt('pear')])
  const page = await query.searchSessions({ query: 'pear' })
  assert.deepEqual(
    page.sessions.map(({ record }) => record.id),
    ['good'],
  )
  assert.deepEqual(page.left, [
    { id: 'torn', reason: 'the disk is gone' },
    { id: 'bad', reason: 'this is no file' },
  ])
  assert.deepEqual(
    (await query.listSessions()).map(({ id }) => id),
    ['good', 'torn', 'bad'],
  )
  await assert.rejects(query.searchEvents({ query: 'pear', sessionId: SessionId('bad') }), {
    code: 'SESSION_QUERY_CORRUPT_SESSION',
    message: 'session "bad" cannot be read: this is no file',
  })
})

test('of a damaged log what stands before the damage is found, and the rest is told of', async t => {
  const { query, put } = await openLibrary(t, {
    medium: medium => ({
      ...medium,
      async *stream(id, options) {
        for await (const batch of medium.stream?.(id, options) ?? []) {
          yield { events: batch.events.filter(({ seq }) => seq < 1) }
          const gap = { fromSeq: 1, toSeq: 1, bytes: 9, reason: 'a frame is missing' }
          yield { gap, events: batch.events.filter(({ seq }) => seq > 1) }
        }
      },
    }),
  })
  await put('s', [prompt('apple'), prompt('plum'), prompt('pear')])
  const left = [{ id: 's', reason: 'damaged from event 1: a frame is missing' }]
  for (const [text, count] of [
    ['apple', 1],
    ['pear', 0],
  ] as const) {
    const page = await query.searchSessions({ query: text })
    assert.deepEqual([page.sessions.length, page.left], [count, left])
  }
})

test('a question that is withdrawn ends with that reason, and the next one is answered', async t => {
  const { query, put } = await openLibrary(t)
  await put('s', [prompt('pear')])
  const controller = new AbortController()
  const reason = new Error('enough')
  const asked = query.searchSessions({ query: 'pear' }, { signal: controller.signal })
  controller.abort(reason)
  await assert.rejects(asked, { code: 'SESSION_QUERY_ABORTED', cause: reason })
  assert.deepEqual(await found(query, 'pear'), { s: [0] })
})

test('without a path nothing is searched, and what needs no index is answered', async t => {
  const { ctx } = await openLibrary(t)
  const { sessionQuery } = await import('./index.ts')
  const inner = ctx.isolate('sessionQuery')
  await inner.plugin(sessionQuery)
  await assert.rejects(inner.sessionQuery.searchSessions({ query: 'pear' }), {
    code: 'SESSION_QUERY_SEARCH_DISABLED',
  })
  assert.deepEqual(await inner.sessionQuery.listSessions(), [])
})
