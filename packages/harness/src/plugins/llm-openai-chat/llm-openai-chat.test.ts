import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { SessionEvent, TokenUsage } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createAssistantMessage, createUserMessage } from '../../core/llm/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, reply, say, startMockProvider } from '../../testing/index.ts'
import type { Harness, MockProvider, MockProviderOptions } from '../../testing/index.ts'
import { retry } from '../retry/index.ts'
import { llmOpenAIChat, providerCatalog } from './index.ts'
import type { OpenAIChatConfig, WireNotice } from './index.ts'

interface Setup extends Harness {
  readonly mock: MockProvider
  readonly notices: WireNotice[]
  readonly agent: () => Agent
}

/** The core, this plugin, and a strict provider behind it. */
async function setup(
  t: TestContext,
  options: MockProviderOptions,
  config: OpenAIChatConfig = {},
): Promise<Setup> {
  const mock = await startMockProvider(options)
  const harness = await createHarness()
  const notices: WireNotice[] = []
  harness.ctx.on('llm/notice', notice => notices.push(notice))
  await harness.ctx.plugin(llmOpenAIChat, { env: mock.env, ...config })
  t.after(async () => {
    await harness.ctx.dispose()
    await mock.close()
  })
  const agent = (): Agent => harness.agent(undefined, { provider: 'deepseek', model: 'deepseek-flash' })
  return { ...harness, agent, mock, notices }
}

async function turn(agent: Agent, text: string): Promise<void> {
  agent.followup(say(text))
  await agent.whenIdle()
}

function endOf(agent: Agent): SessionEvent<'turn/end'>['data']['reason'] | undefined {
  return agent.session.last('turn/end')?.data.reason
}

function answersOf(agent: Agent): string[] {
  return agent.session.messages
    .filter(message => message.role === 'assistant')
    .map(message =>
      message.content.map(block => (block.type === 'text' ? block.text : `<${block.type}>`)).join(''),
    )
}

function addEcho(harness: Harness): void {
  harness.ctx.tools.register(
    defineTool({
      name: 'echo',
      description: 'Gives the text back.',
      parameters: { text: { type: 'string', required: true } },
      execute: ({ text }) => text,
    }),
  )
}

test('disposing takes routes and discovery away', async t => {
  const mock = await startMockProvider()
  t.after(() => mock.close())
  const { ctx } = await createHarness()
  const fiber = ctx.plugin(llmOpenAIChat, { env: mock.env })
  await fiber
  assert.deepEqual(
    ctx.llm.listProviders().map(provider => provider.id),
    ['mock', ...Object.keys(providerCatalog)],
  )
  assert.equal((await ctx.llm.discoverModels('deepseek')).length, 2)
  await fiber.dispose()
  assert.deepEqual(
    ctx.llm.listProviders().map(provider => provider.id),
    ['mock'],
  )
  await assert.rejects(ctx.llm.discoverModels('deepseek'), { code: 'NO_DISCOVERY' })
  await ctx.dispose()
})

test('a turn with tools runs against a strict host, and the usage in the log is what the host charged', async t => {
  const harness = await setup(t, {
    script: [
      reply.toolCall('echo', { text: 'eins' }, { reasoning: 'first this', text: 'One moment.' }),
      reply.toolCalls([
        { name: 'echo', arguments: { text: 'zwei' } },
        { name: 'echo', arguments: { text: 'drei' } },
      ]),
      reply.text('Done.', { reasoning: 'that was it' }),
      reply.text('Again.'),
    ],
  })
  addEcho(harness)
  const agent = harness.agent()
  await turn(agent, 'Count.')
  await turn(agent, 'Thanks.')
  assert.deepEqual(endOf(agent), { kind: 'completed' })
  assert.deepEqual(
    harness.mock.requests.flatMap(request => request.problems),
    [],
  )
  const usages = [...agent.session.events].flatMap(event =>
    event.type === 'assistant/message' && event.data.usage ? [event.data.usage] : [],
  )
  const sum = (pick: (usage: TokenUsage) => number): number =>
    usages.reduce((total, usage) => total + pick(usage), 0)
  assert.deepEqual(
    {
      inputTokens: sum(usage => usage.inputTokens),
      cacheReadTokens: sum(usage => usage.cacheReadTokens ?? 0),
      outputTokens: sum(usage => usage.outputTokens),
      reasoningTokens: sum(usage => usage.reasoningTokens ?? 0),
    },
    harness.mock.ledger.total,
  )
})

test('the prompt of a session only grows at its end', async t => {
  const harness = await setup(t, {
    script: [
      reply.toolCall('echo', { text: 'a' }),
      reply.text('b'),
      reply.toolCall('echo', { text: 'c' }),
      reply.text('d'),
    ],
  })
  addEcho(harness)
  const agent = harness.agent()
  await turn(agent, 'one')
  await turn(agent, 'two')
  const texts = harness.mock.requests.map(request => request.text.slice(0, -2))
  for (const [at, text] of texts.entries()) if (at > 0) assert.ok(text.startsWith(texts[at - 1] ?? ''), text)
  assert.equal(texts.length, 4)
})

for (const args of [
  '{"text": "l',
  '',
  'null',
  '[1]',
  '{}{}{}',
  "{'a':1}",
  '{"text":"a"}trailing',
  '{"text":"a\nb"}',
]) {
  test(`arguments like ${JSON.stringify(args)} are answered, and the session goes on`, async t => {
    const harness = await setup(t, {
      script: [reply.toolCall('echo', args), reply.text('I see.'), reply.text('Fine.')],
    })
    addEcho(harness)
    const agent = harness.agent()
    await turn(agent, 'Go.')
    await turn(agent, 'And now?')
    assert.deepEqual(endOf(agent), { kind: 'completed' })
    assert.equal(harness.mock.requests.length, 3)
    assert.deepEqual(
      harness.mock.requests.flatMap(request => request.problems),
      [],
    )
    const calls = agent.session.messages.flatMap(message =>
      message.content.filter(block => block.type === 'tool-call'),
    )
    assert.equal(calls[0]?.arguments, args)
  })
}

test('a call without an id keeps the id it got, in its result and in every later request', async t => {
  const call = { index: 0, function: { name: 'echo', arguments: '{"text":"x"}' } }
  const harness = await setup(t, {
    script: [
      reply.sse([
        {
          choices: [
            { index: 0, delta: { tool_calls: [call, { ...call, index: 1 }] }, finish_reason: 'tool_calls' },
          ],
        },
      ]),
      reply.text('ok'),
    ],
  })
  addEcho(harness)
  const agent = harness.agent()
  await turn(agent, 'Go.')
  const sent = harness.mock.requests[1]?.body.messages ?? []
  const ids = sent.flatMap(message => message.tool_calls?.map(made => made.id) ?? [])
  assert.equal(new Set(ids).size, 2)
  assert.deepEqual(
    sent.flatMap(message => message.tool_call_id ?? []),
    ids,
  )
  assert.deepEqual(endOf(agent), { kind: 'completed' })
})

test('a log with half a character in it is usable', async t => {
  const harness = await setup(t, { script: [reply.text('ok')] })
  const agent = harness.agent()
  agent.session.append('turn/start', { turn: 1 })
  agent.session.append('step/start', { turn: 1, step: 1 })
  agent.session.append(
    'user/message',
    createUserMessage({ content: [{ type: 'text', text: 'cut \ud83d' }], source: { kind: 'user' } }),
    { surfaceOp: 'append' },
  )
  agent.session.append('step/end', { turn: 1, step: 1 })
  agent.session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  await turn(agent, 'Go on.')
  assert.deepEqual(answersOf(agent), ['ok'])
  assert.deepEqual(
    harness.notices.map(notice => notice.code),
    ['LONE_SURROGATE'],
  )
})

test('an answer that breaks off is asked for again, and a tool that ran does not run twice', async t => {
  let runs = 0
  const broken = reply.text('half an answer').cut({ pieces: 2, how: 'fin' })
  const harness = await setup(
    t,
    {
      script: [reply.toolCall('mark'), broken, reply.status(429, { body: 'slow down' }), reply.text('whole')],
    },
    { providers: { deepseek: { retry: { initialDelayMs: 1, maxDelayMs: 2 } } } },
  )
  harness.ctx.tools.register(
    defineTool({ name: 'mark', description: '', parameters: {}, execute: () => `run ${++runs}` }),
  )
  await harness.ctx.plugin(retry)
  const agent = harness.agent()
  await turn(agent, 'Go.')
  assert.deepEqual(answersOf(agent), ['<tool-call>', 'whole'])
  assert.equal(runs, 1)
  assert.deepEqual(
    harness.mock.requests.map(request => request.headers['authorization']),
    Array.from({ length: 4 }, () => 'Bearer sk-mock'),
  )
})

test('a refused key ends the turn at once with the variable to check', async t => {
  const harness = await setup(t, { key: 'sk-right' }, { findKey: () => 'sk-wrong' })
  await harness.ctx.plugin(retry)
  const agent = harness.agent()
  await turn(agent, 'Go.')
  const end = endOf(agent)
  assert.ok(end?.kind === 'error')
  assert.equal(end.error.code, 'AUTH')
  assert.match(
    end.error.message,
    /^deepseek answered 401: .* — check the key from DEEPSEEK_API_KEY at https:/,
  )
})

test('a long answer is few chunks, whose text is whole, and the first comes at once', async t => {
  const words = Array.from({ length: 400 }, (_, at) => `w${at}`).join(' ')
  const harness = await setup(t, { script: [reply.text(words)] })
  const agent = harness.agent()
  await turn(agent, 'Go.')
  assert.deepEqual(answersOf(agent), [words])
  const deltas = [...agent.session.events].filter(
    event => event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta',
  )
  assert.ok(deltas.length < 100, String(deltas.length))
})

test('a picture is taken from the artifacts of its session', async t => {
  const harness = await setup(t, { script: [reply.text('A dot.')] })
  const agent = harness.agent()
  const png = Buffer.from('89504e470d0a1a0a0000', 'hex')
  const { sha256 } = await agent.session.artifacts.put(png, 'image/png')
  const attachment = { sha256, mediaType: 'image/png', bytes: png.length }
  agent.followup(createUserMessage({ content: [{ type: 'image', attachment }], source: { kind: 'user' } }))
  await agent.whenIdle()
  assert.deepEqual(harness.mock.requests[0]?.body.messages?.at(-1)?.content, [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
  ])
})

test('a cancel in the middle of an answer keeps what was seen, and the next turn has it', async t => {
  const partial = reply
    .sse([{ choices: [{ index: 0, delta: { content: 'Partial' } }] }], { done: false })
    .hold()
  const harness = await setup(t, { script: [partial, reply.text('Next.')] })
  const agent = harness.agent()
  agent.followup(say('Go.'))
  const seen = new Promise<void>(resolve => {
    harness.ctx.on('session/event', (_session, event) => {
      if (event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta') resolve()
    })
  })
  await seen
  agent.cancel({ kind: 'user' })
  await agent.whenIdle()
  assert.deepEqual(endOf(agent), { kind: 'aborted', reason: { kind: 'user' } })
  await harness.mock.requests[0]?.closed
  await turn(agent, 'Again.')
  assert.deepEqual(answersOf(agent), ['Partial', 'Next.'])
  assert.deepEqual(harness.mock.requests[1]?.body.messages?.map(message => message.content).slice(-3), [
    'Go.',
    'Partial',
    'Again.',
  ])
})

test('an answer with an id the session knows gets another one', async t => {
  const harness = await setup(t, {
    script: [
      reply.toolCall('echo', { text: 'a' }, { id: 'call_0' }),
      reply.toolCall('echo', { text: 'b' }, { id: 'call_0' }),
      reply.text('ok'),
    ],
  })
  addEcho(harness)
  const agent = harness.agent()
  await turn(agent, 'Go.')
  assert.deepEqual(endOf(agent), { kind: 'completed' })
  const ids = agent.session.messages.flatMap(message =>
    message.content.flatMap(block => (block.type === 'tool-call' ? [block.id] : [])),
  )
  assert.equal(ids[0], CallId('call_0'))
  assert.notEqual(ids[1], ids[0])
})

test('the wire form of a message is made for its own adapter alone', async t => {
  const { ctx, mock } = await setup(t, { script: [reply.text('ok')] })
  const said = createAssistantMessage({
    content: [{ type: 'text', text: 'yes' }],
    source: {
      kind: 'model',
      provider: 'elsewhere',
      model: 'm',
      replayState: { response: { reasoning_details: [1] } },
    },
  })
  const stream = ctx.llm.stream({
    provider: 'deepseek',
    model: 'deepseek-flash',
    messages: [say('x'), said, say('y')],
  })
  for await (const chunk of stream) if (chunk.type === 'finish') assert.equal(chunk.reason.kind, 'stop')
  assert.deepEqual(mock.requests[0]?.body.messages?.[1], { role: 'assistant', content: 'yes' })
})
