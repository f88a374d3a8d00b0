import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { rebuildRequest, rebuildRequests, requestsOf } from './index.ts'
import { Session } from '../../core/session/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import {
  answerFact,
  createHarness,
  headerFact,
  logOf,
  reply,
  resultFact,
  say,
  startMockProvider,
  textFact,
  userFact,
} from '../../testing/index.ts'
import type { Draft, ScriptEntry } from '../../testing/index.ts'
import { llmOpenAIChat } from '../llm-openai-chat/index.ts'
import { retry } from '../retry/index.ts'

/** A loop that talks over the wire, and whether each body that arrived is the one rebuilt from the log. */
async function overTheWire(t: TestContext, ...script: readonly ScriptEntry[]) {
  const provider = await startMockProvider({ script, rules: 'off' })
  const { ctx } = await createHarness()
  t.after(() => Promise.all([ctx.dispose(), provider.close()]))
  const retryFast = { initialDelayMs: 1, maxDelayMs: 1 }
  await ctx.plugin(retry)
  await ctx.plugin(llmOpenAIChat, { env: provider.env, providers: { deepseek: { retry: retryFast } } })
  const tool = (name: string) =>
    defineTool({
      name,
      description: `Does ${name}.`,
      parameters: {},
      isConcurrencySafe: () => true,
      execute: () => `did ${name}`,
    })
  ctx.tools.register(tool('look'))
  const route = { provider: 'deepseek', model: 'deepseek-flash' }
  const agent = ctx.agentLoop.create(SessionId('wire'), route)
  const turn = async (who: Agent, words: string): Promise<void> => {
    who.followup(say(words))
    await who.whenIdle()
  }
  const assertEqualBodies = async (session: Session, from = 0): Promise<void> => {
    const requests = requestsOf(session).slice(from)
    const bodies = await Promise.all(
      requests.map(async ({ seq }) => {
        const rebuilt = rebuildRequest(session, seq)
        assert.ok(rebuilt)
        return Buffer.from((await ctx.llm.encode(rebuilt.request)) ?? []).toString()
      }),
    )
    assert.deepEqual(
      bodies,
      provider.requests.slice(-bodies.length).map(({ text }) => text),
    )
  }
  return { ctx, provider, agent, route, tool, turn, assertEqualBodies }
}

test('each request rebuilt from the log is byte for byte what the provider received', async t => {
  const { ctx, provider, agent, route, tool, turn, assertEqualBodies } = await overTheWire(
    t,
    reply.toolCalls([{ name: 'look' }, { name: 'look' }], { text: 'Looking ünder 𝒳' }),
    reply.text('found', { reasoning: 'so' }),
    reply.status(500),
    reply.text('better now'),
    reply.text('with two tools'),
    reply.toolCall('gone', '{broken'),
    reply.text('after the broken call'),
    reply.text('in the fork'),
    reply.text('after resume'),
  )
  await turn(agent, 'one')
  await turn(agent, 'two')
  ctx.tools.register(tool('touch'))
  ctx.systemPrompt.section({ name: 'rules', order: 5, text: 'Be brief.' })
  await turn(agent, 'three')
  await turn(agent, 'four')
  await assertEqualBodies(agent.session)
  assert.equal(provider.requests.length, 7)

  const { session } = agent
  const end = session.last('turn/end')?.seq
  const fork = await ctx.agents.create({
    sessionId: SessionId('fork'),
    seed: session.events.slice(0, (end ?? 0) + 1),
    agentOptions: route,
  })
  await turn(fork.agent, 'five')
  await assertEqualBodies(fork.agent.session, 7)
  const stored = Session.fromRestore(session.id, structuredClone(session.events), session.header)
  const resumed = await ctx.agents.create({
    sessionId: SessionId('again'),
    seed: stored.events,
    agentOptions: { ...route, maxTokens: 77 },
  })
  await turn(resumed.agent, 'six')
  await assertEqualBodies(resumed.agent.session, 7)
  assert.match(provider.requests.at(-1)?.text ?? '', /77/)
})

test('one pass gives the same requests as rebuilding each', async t => {
  const { agent, turn } = await overTheWire(
    t,
    reply.toolCall('look'),
    reply.text('found'),
    reply.status(500),
    reply.text('ok'),
  )
  await turn(agent, 'one')
  await turn(agent, 'two')
  const { session } = agent
  const seqs = requestsOf(session).map(({ seq }) => seq)
  assert.equal(seqs.length, 4)
  assert.deepEqual(
    [...rebuildRequests(session, seqs)],
    seqs.map(seq => rebuildRequest(session, seq)),
  )
})

/** Places, attempts and outcomes, one word each. */
function requestsIn(...drafts: readonly Draft[]): string {
  const log = logOf(...drafts)
  const header = { version: 0, id: SessionId('s'), createdAt: 0 }
  const session = Session.fromRestore(SessionId('s'), log, header, { readOnly: 'test' })
  return requestsOf(session)
    .map(
      ({ n, turn, step, attempt, from, seq, outcome }) =>
        `${n}:${turn}.${step}.${attempt}@${from}-${seq}=${outcome.kind}`,
    )
    .join(' ')
}

const start: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('hi')],
  ['request/header', headerFact()],
]
const failure = { code: 'SERVER', message: 'down' }
const failed: Draft = [
  'assistant/chunk',
  { turn: 1, step: 1, chunk: { type: 'finish', reason: { kind: 'error', failure } } },
]
const end: readonly Draft[] = [
  ['step/end', { turn: 1, step: 1 }],
  ['turn/end', { turn: 1, reason: { kind: 'interrupted' } }],
]

test('every attempt is a request, and its outcome is told', () => {
  const cases: [string, readonly Draft[], string][] = [
    ['runs still', start, '1:1.1.1@1-4=open'],
    ['no word of an answer', [...start, ...end], '1:1.1.1@1-4=silent'],
    ['broke off', [...start, ['assistant/chunk', textFact('ha')], ...end], '1:1.1.1@1-4=cut'],
    [
      'broke off and was kept',
      [
        ...start,
        ['assistant/chunk', textFact('ha')],
        ['assistant/message', { ...answerFact('ha'), interrupted: true }],
        ...end,
      ],
      '1:1.1.1@1-4=cut',
    ],
    ['failed', [...start, failed, ...end], '1:1.1.1@1-4=failed'],
    [
      'failed, then answered',
      [
        ...start,
        failed,
        ['assistant/chunk', textFact('ok')],
        ['assistant/message', answerFact('ok')],
        ...end,
      ],
      '1:1.1.1@1-4=failed 2:1.1.2@5-5=answered',
    ],
    [
      'failed, and the next attempt is silent',
      [
        ...start,
        failed,
        ['llm/retry-started', { retryId: 'r', turn: 1, step: 1, retry: 1 }, { ignorable: true }],
        ...end,
      ],
      '1:1.1.1@1-4=failed 2:1.1.2@5-6=silent',
    ],
    ['never said what to ask', [...start.slice(0, 3), ...end], ''],
    [
      'a steered message joins the step it entered',
      [
        ...start,
        ['assistant/chunk', textFact('ok')],
        ['assistant/message', answerFact('', ['a'])],
        ['tool/result', resultFact('a', 'done')],
        ['step/end', { turn: 1, step: 1 }],
        ['step/start', { turn: 1, step: 2 }],
        ['user/message', userFact('more')],
        ['assistant/chunk', textFact('ok', { step: 2 })],
      ],
      '1:1.1.1@1-4=answered 2:1.2.1@8-10=open',
    ],
  ]
  for (const [title, drafts, expected] of cases) assert.equal(requestsIn(...drafts), expected, title)
})

test('before anything was asked there is no request', () => {
  const session = Session.create(SessionId('empty'))
  assert.deepEqual(requestsOf(session), [])
  assert.equal(rebuildRequest(session, 0), undefined)
})

test('the body of a request is told without a key, and not at all where an adapter has no wire', async t => {
  const { ctx } = await createHarness()
  t.after(() => ctx.dispose())
  await ctx.plugin(llmOpenAIChat, { env: {} })
  const messages = [say('hi')]
  const body = await ctx.llm.encode({ provider: 'deepseek', model: 'deepseek-flash', messages })
  const { model, messages: sent } = JSON.parse(Buffer.from(body ?? []).toString()) as Record<string, unknown>
  assert.deepEqual([model, sent], ['deepseek-flash', [{ role: 'user', content: 'hi' }]])
  assert.equal(await ctx.llm.encode({ provider: 'mock', model: 'mock', messages }), undefined)
  await assert.rejects(ctx.llm.encode({ provider: 'nobody', model: 'm', messages }), { code: 'NO_ADAPTER' })
})
