import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import { answerFact, userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { createHarness } from '../../testing/harness.ts'
import { openLibrary } from './test-library.ts'
import type { LibraryOptions } from './test-library.ts'

const prompt = (text: string): Draft => ['user/message', userFact(text)]
const onSurface = { surfaceOp: 'append' } as const
const cwd = '/srv/a'

async function setup(t: TestContext, options: LibraryOptions = {}) {
  const { ctx } = await createHarness()
  const library = await openLibrary(t, { ...options, ctx, config: { tools: true, ...options.config } })
  const { put } = library
  const summary = { surfaceOp: { op: 'replace', start: 0, end: 1 }, sourceEventSeqs: [0, 1] } as const
  await put(
    'near',
    [
      prompt('where do pears grow?'),
      ['assistant/message', answerFact('A pear grows on a tree, a pear does.')],
      ['user/message', userFact('on trees'), summary],
    ],
    { cwd, createdAt: 1_700_000_000_000 },
  )
  await put('fork', [prompt('one more pear')], {
    cwd,
    parentSession: SessionId('near'),
    createdAt: 1_700_000_001_000,
  })
  await put('far', [prompt('pear')], { cwd: '/srv/b', parentSession: SessionId('near') })
  const { agent } = await ctx.agents.create({
    sessionId: SessionId('own'),
    meta: { cwd },
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  const call = async (name: string, args: object, exec: object = { agent }) => {
    const signal = new AbortController().signal
    const request = { callId: CallId('c'), name, arguments: args, signal, ...exec }
    const { content, ...rest } = await ctx.tools.execute(request)
    const text = content.map(block => (block.type === 'text' ? block.text : '')).join('')
    return { text, code: rest.isError ? rest.error.info?.code : undefined }
  }
  return { ...library, agent, call }
}

test('a model is given the tools only where they are wished for', async t => {
  const names = (ctx: { tools: { schemas(): readonly { name: string }[] } }) =>
    ctx.tools
      .schemas()
      .map(({ name }) => name)
      .filter(name => name.startsWith('session_'))
  const { ctx } = await setup(t)
  assert.deepEqual(names(ctx), [
    'session_event_read',
    'session_event_search',
    'session_event_trace',
    'session_search',
    'session_trace',
  ])
  const { ctx: plain } = await createHarness()
  await openLibrary(t, { ctx: plain })
  assert.deepEqual(names(plain), [])
})

test('session_search lists the sessions of the folder with their best event', async t => {
  const { call } = await setup(t)
  assert.deepEqual(await call('session_search', { query: 'Pear' }), {
    code: undefined,
    text: `Sessions that hold "Pear":
1. near, "where do pears grow?", created 2023-11-14T22:13:20.000Z, stored, 2 events
   best: #1 assistant/message, shadowed: A pear grows on a tree, a pear does.
2. fork, "one more pear", created 2023-11-14T22:13:21.000Z, forked from near, stored, 1 event
   best: #0 user/message, current: one more pear`,
  })
  assert.equal((await call('session_search', { query: 'quince' })).text, 'No other session holds "quince".')
  const some = async (args: object) => (await call('session_search', { query: 'pear', ...args })).text
  assert.match(await some({ created_at_from: '2023-11-14T23:13:21+01:00' }), /^[^\n]+\n1\. fork.*\n.*$/)
  assert.match(await some({ parent_session_ids: ['near'] }), /^[^\n]+\n1\. fork.*\n.*$/)
  assert.match(await some({ include_root_sessions: true }), /^[^\n]+\n1\. near.*\n.*$/)
  assert.match(await some({ event_types: ['assistant/message'], event_seq_from: 1 }), /\n1\. near.*\n.*$/)
})

test('a full page asks for a narrower question', async t => {
  const { call } = await setup(t, { config: { maxSearchResults: 1 } })
  const { text } = await call('session_search', { query: 'pear' })
  assert.match(text, /\nThere are more; narrow the query or the filters\.$/)
})

test('session_event_search looks into this session up to the step, or into another', async t => {
  const { agent, call } = await setup(t)
  const { session } = agent
  session.append('turn/start', { turn: 1 })
  session.append('user/message', userFact('pear before'), onSurface)
  session.append('step/start', { turn: 1, step: 1 })
  session.append('assistant/message', answerFact('let me look for a pear'), onSurface)
  assert.equal(
    (await call('session_event_search', { query: 'pear' })).text,
    `Events of session own that hold "pear":
1. #1 user/message, current: pear before`,
  )
  assert.equal(
    (await call('session_event_search', { query: 'pear', session_id: 'near', surfaces: ['current'] })).text,
    'No event of session near holds "pear".',
  )
})

test('session_trace, session_event_trace and session_event_read tell of sessions and events', async t => {
  const { call } = await setup(t)
  assert.equal(
    (await call('session_trace', { session_id: 'near' })).text,
    `Session near
Ancestors: none
Forks:
  fork, created 2023-11-14T22:13:21.000Z, forked from near, stored`,
  )
  assert.equal(
    (await call('session_event_trace', { session_id: 'near', seq: 1 })).text,
    `Event 1 of session near: assistant/message, shadowed
Replaced by: 2
Replaces: none
Stands on: none
Cited by: 2`,
  )
  assert.equal(
    (await call('session_event_read', { session_id: 'near', seq: 2, before: 1, after: 5 })).text,
    `Session near
#1 assistant/message, shadowed: A pear grows on a tree, a pear does.
#2 current:
${JSON.stringify({ type: 'user/message', seq: 2, time: 1_700_000_000_002, data: userFact('on trees'), surfaceOp: { op: 'replace', start: 0, end: 1 }, sourceEventSeqs: [0, 1] }, null, 1)}`,
  )
})

test('a model learns no more of another folder than of nothing', async t => {
  const { call } = await setup(t)
  for (const id of ['far', 'none'])
    for (const [name, args] of [
      ['session_trace', {}],
      ['session_event_search', { query: 'pear' }],
      ['session_event_read', { seq: 0 }],
    ] as const) {
      const { text, code } = await call(name, { ...args, session_id: id })
      assert.equal(code, 'SESSION_QUERY_TOOL_UNAUTHORIZED')
      assert.ok(text.includes(`session "${id}" is not there, or not in this folder`), text)
    }
})

test('a failure of the store is told without its words, a wrong question with them', async t => {
  const { call } = await setup(t, {
    medium: medium => ({ ...medium, list: () => Promise.reject(new Error('EIO /srv/secret')) }),
  })
  const failed = await call('session_search', { query: 'pear' })
  assert.equal(failed.code, 'SESSION_QUERY_TOOL_FAILED')
  assert.ok(!failed.text.includes('secret'), failed.text)
  const lost = await call('session_search', { query: 'pear', created_at_from: '2026-11-30T14:05' })
  assert.equal(lost.code, 'SESSION_QUERY_INVALID_FILTER')
  assert.match(lost.text, /created_at_from: must be a time with its zone, such as .*, not "2026-11-30T14:05"/)
  assert.equal((await call('session_trace', {}, {})).code, 'SESSION_QUERY_TOOL_MISSING_AGENT')
})
