import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { SessionId } from '@dsh/protocol'
import type {
  EpochHeader,
  LlmCallConfig,
  SessionEvent,
  SessionEventMap,
  SessionEventType,
} from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { fail, ScriptedAdapter, text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { AgentRegistry } from '../agent/index.ts'
import type { Agent, AgentOptions } from '../agent/index.ts'
import { lintLog, rebuildRequest, requestMismatch } from '../invariants/index.ts'
import { LlmRuntime } from '../llm/index.ts'
import type { GenerateOptions } from '../llm/index.ts'
import { SystemPrompt } from '../prompt/index.ts'
import { SessionStore } from '../session/index.ts'
import type { Session } from '../session/index.ts'
import { defineTool, ToolRuntime } from '../tools/index.ts'
import { AgentLoop } from './index.ts'

const tool = (name: string) =>
  defineTool({ name, description: `Does ${name}.`, parameters: {}, execute: () => 'ok' })

/** Every request is checked against the log at the moment it is sent. */
async function setup(...script: ScriptEntry[]) {
  const harness = await createHarness(script)
  const { ctx, adapter } = harness
  ctx.tools.register(tool('noop'))
  const sent: GenerateOptions[] = []
  ctx.on('llm/stream', (options, next) => {
    sent.push(options)
    const session = ctx.sessions.get(options.sessionId ?? SessionId('none'))
    assert.equal(requestMismatch(options, rebuildRequest(session?.events ?? [])), undefined)
    return next()
  })
  const start = (options: AgentOptions = {}): Agent => harness.agent(undefined, options)
  const turn = async (who: Agent, words: string): Promise<void> => {
    who.followup(say(words))
    await who.whenIdle()
    assert.deepEqual(lintLog(who.session.events), [])
  }
  return { ctx, adapter, sent, start, turn }
}

function dataOf<Type extends SessionEventType>(session: Session, type: Type): SessionEventMap[Type][] {
  return session.events.filter(event => event.type === type).map(event => event.data as SessionEventMap[Type])
}

function headersOf(session: Session): [string, EpochHeader][] {
  return dataOf(session, 'request/header').map(({ header, reason }) => [reason, header])
}

/** A session that goes on elsewhere, as a store would give it back. */
async function resumed(ctx: Context, agent: Agent, options: AgentOptions) {
  const seed = JSON.parse(JSON.stringify(agent.session.events)) as SessionEvent[]
  const { agent: next } = await ctx.agents.create({
    sessionId: SessionId(`${agent.id}-again`),
    seed,
    agentOptions: options,
  })
  return next
}

test('a request says what the log says, is frozen, and begins with the one before it', async () => {
  const { ctx, sent, start, turn } = await setup(toolCall('noop', {}), text('a'), 'hang', text('b'))
  const agent = start()
  await turn(agent, 'one')
  agent.followup(say('two'))
  await nextTask()
  agent.inject(say('note'))
  agent.cancel({ kind: 'user' }, { keepInbox: true })
  await agent.whenIdle()
  await turn(agent, 'three')
  assert.equal(sent.length, 4)
  for (const request of sent) {
    assert.ok(Object.isFrozen(request) && Object.isFrozen(request.messages))
    assert.equal(request.sessionId, agent.id)
    assert.ok(request.signal instanceof AbortSignal)
    assert.equal(request.purpose, undefined)
  }
  for (const [index, request] of sent.slice(1).entries()) {
    const before = sent[index]?.messages ?? []
    assert.ok(before.every((message, at) => request.messages[at] === message))
  }
  assert.equal(headersOf(agent.session).length, 1)
  assert.equal(ctx.agents.list().length, 1)
})

test('what is not in the log, or could be changed, is told', () => {
  const config = { provider: 'p', model: 'm' }
  const message = Object.freeze(say('a'))
  const parts = { header: { config, system: 's' }, messages: [message] }
  const request = Object.freeze({ ...config, system: 's', messages: Object.freeze([message]) })
  assert.equal(requestMismatch(request, parts), undefined)
  assert.match(requestMismatch(request, { ...parts, header: undefined }) ?? '', /no request header/)
  assert.match(requestMismatch(Object.freeze({ ...request, system: 't' }), parts) ?? '', /^system /)
  assert.match(requestMismatch(Object.freeze({ ...request, temperature: 1 }), parts) ?? '', /^temperature /)
  assert.match(
    requestMismatch(Object.freeze({ ...request, messages: Object.freeze([]) }), parts) ?? '',
    /0 messages/,
  )
  assert.match(
    requestMismatch(Object.freeze({ ...request, messages: Object.freeze([say('b')]) }), parts) ?? '',
    /message 0/,
  )
  assert.match(requestMismatch({ ...request }, parts) ?? '', /frozen/)
  assert.match(requestMismatch(Object.freeze({ ...request, messages: [message] }), parts) ?? '', /frozen/)
})

test('the header is logged once while nothing changes, and again when the tools do', async () => {
  const { ctx, start, turn } = await setup(toolCall('noop', {}), text('a'), text('b'), text('c'))
  const agent = start()
  ctx.once('tools/result', () => void ctx.tools.register(tool('another')))
  await turn(agent, 'one')
  await turn(agent, 'two')
  const headers = headersOf(agent.session)
  assert.deepEqual(
    headers.map(([reason]) => reason),
    ['initial', 'change'],
  )
  assert.deepEqual(
    headers.map(([, { tools }]) => tools?.map(({ name }) => name)),
    [['noop'], ['noop', 'another']],
  )
  assert.match(outline(agent.session.events), /tr se ss rh ch am/)
})

test('a session that goes on logs its header as resumed, and keeps its turn numbers and history', async () => {
  const { ctx, sent, start, turn } = await setup(text('a'), text('b'), text('c'))
  const first = start()
  await turn(first, 'one')
  const agent = await resumed(ctx, first, { provider: 'mock', model: 'mock' })
  await agent.whenIdle()
  agent.followup(say('two'))
  await agent.whenIdle()
  assert.deepEqual(
    headersOf(agent.session).map(([reason]) => reason),
    ['initial', 'resume'],
  )
  assert.deepEqual(
    dataOf(agent.session, 'turn/start').map(({ turn: number }) => number),
    [1, 2],
  )
  assert.deepEqual(
    sent[1]?.messages.slice(0, 2),
    sent[0]?.messages.concat(dataOf(first.session, 'assistant/message').map(({ message }) => message)),
  )
  assert.deepEqual(
    agent.session.events.map(({ seq }) => seq),
    [...agent.session.events.keys()],
  )
})

test('a tool that is gone after a resume is gone from the header, and calling it says so', async () => {
  const { ctx, start, turn } = await setup(toolCall('extra', {}), text('a'), toolCall('extra', {}), text('b'))
  const unregister = ctx.tools.register(tool('extra'))
  const first = start()
  await turn(first, 'one')
  unregister()
  const agent = await resumed(ctx, first, { provider: 'mock', model: 'mock' })
  agent.followup(say('two'))
  await agent.whenIdle()
  const [, [reason, header] = []] = headersOf(agent.session)
  assert.equal(reason, 'resume')
  assert.deepEqual(
    header?.tools?.map(({ name }) => name),
    ['noop'],
  )
  assert.deepEqual(
    dataOf(agent.session, 'tool/result').map(({ error }) => error?.code),
    [undefined, 'UNKNOWN_TOOL'],
  )
})

test('a listener chooses the route, the choice stays, and the context follows the route', async () => {
  const { ctx, sent, start, turn } = await setup(text('a'), text('d'))
  const big = new ScriptedAdapter([text('b'), text('c')], { context: { contextWindow: 1000 } })
  ctx.llm.registerAdapter(['big'], big)
  const agent = start()
  const seeds: LlmCallConfig[] = []
  let route: Partial<LlmCallConfig> = {}
  ctx.on('agent/request', async (_payload, next) => {
    const seed = await next()
    assert.ok(Object.isFrozen(seed))
    seeds.push(seed)
    return { ...seed, ...route }
  })
  await turn(agent, 'one')
  route = { provider: 'big', model: 'x', temperature: 0.5 }
  await turn(agent, 'two')
  route = {}
  await turn(agent, 'three')
  route = { provider: 'mock', model: 'mock' }
  await turn(agent, 'four')
  assert.deepEqual(seeds[2], { provider: 'big', model: 'x', temperature: 0.5 })
  assert.equal(sent[2]?.temperature, 0.5)
  assert.deepEqual(dataOf(agent.session, 'request/context'), [
    { provider: 'mock', model: 'mock' },
    { provider: 'big', model: 'x', contextWindow: 1000 },
    { provider: 'mock', model: 'mock' },
  ])
  assert.deepEqual(
    headersOf(agent.session).map(([reason]) => reason),
    ['initial', 'change', 'change'],
  )
})

test('what the adapter fills in is marked, and asked for anew each time', async () => {
  const { ctx, start, turn } = await setup()
  const reasoning = {
    efforts: [
      { id: 'low', name: 'Low' },
      { id: 'high', name: 'High' },
    ],
    defaultEffort: 'low',
  }
  const adapter = new ScriptedAdapter([text('a'), text('b'), text('c')], { reasoning, defaultMaxTokens: 100 })
  ctx.llm.registerAdapter(['think'], adapter)
  const agent = start({ provider: 'think' })
  const seeds: LlmCallConfig[] = []
  let effort: Partial<LlmCallConfig> = {}
  ctx.on('agent/request', async (_payload, next) => {
    const seed = await next()
    seeds.push(seed)
    return { ...seed, ...effort }
  })
  await turn(agent, 'one')
  const [, header] = headersOf(agent.session)[0] ?? []
  assert.deepEqual(header?.config, {
    provider: 'think',
    model: 'mock',
    reasoningEffort: 'low',
    maxTokens: 100,
  })
  assert.deepEqual(header?.adapterDefaults, { reasoningEffort: true, maxTokens: true })
  effort = { reasoningEffort: 'high' }
  await turn(agent, 'two')
  const again = await resumed(ctx, agent, { provider: 'think', model: 'mock', maxTokens: 50 })
  effort = {}
  again.followup(say('three'))
  await again.whenIdle()
  assert.deepEqual(seeds, [
    { provider: 'think', model: 'mock' },
    { provider: 'think', model: 'mock' },
    { provider: 'think', model: 'mock', reasoningEffort: 'high', maxTokens: 50 },
  ])
})

test('an effort that was chosen does not follow to another model', async () => {
  const { ctx, start, turn } = await setup(text('z'))
  const reasoning = { efforts: [{ id: 'low', name: 'Low' }] }
  ctx.llm.registerAdapter(['think'], new ScriptedAdapter([text('a')], { reasoning }))
  const agent = start({ provider: 'think' })
  ctx.once('agent/request', async (_payload, next) => ({ ...(await next()), reasoningEffort: 'low' }))
  await turn(agent, 'one')
  const again = await resumed(ctx, agent, { provider: 'mock', model: 'mock' })
  again.followup(say('two'))
  await again.whenIdle()
  assert.deepEqual(headersOf(again.session)[1]?.[1].config, { provider: 'mock', model: 'mock' })
})

test('a session that goes on without a route keeps the one it had', async () => {
  const { ctx, start, turn } = await setup(text('a'), text('b'))
  const agent = start()
  await turn(agent, 'one')
  const again = await resumed(ctx, agent, {})
  again.followup(say('two'))
  await again.whenIdle()
  assert.match(outline(again.session.events), /te:completed$/)
})

test('without provider or model there is no request', async () => {
  const { ctx, sent } = await setup()
  const cases: readonly (readonly [AgentOptions, string])[] = [
    [{}, 'no provider was chosen for the request'],
    [{ provider: 'mock' }, 'no model of "mock" was chosen for the request'],
  ]
  for (const [options, message] of cases) {
    const agent = ctx.agentLoop.create(undefined, options)
    agent.followup(say('go'))
    await agent.whenIdle()
    assert.match(outline(agent.session.events), / um se te:error\{UNKNOWN\}$/)
    assert.deepEqual(dataOf(agent.session, 'turn/end')[0]?.reason, {
      kind: 'error',
      error: { message, code: 'UNKNOWN' },
    })
  }
  assert.equal(sent.length, 0)
})

test('what is empty is absent, in the header and in the request', async () => {
  const ctx = new Context()
  for (const plugin of [LlmRuntime, SessionStore, ToolRuntime, AgentRegistry]) await ctx.plugin(plugin)
  await ctx.plugin(SystemPrompt, { identity: false })
  await ctx.plugin(AgentLoop)
  const adapter = new ScriptedAdapter([text('ok')])
  ctx.llm.registerAdapter(['mock'], adapter)
  const agent = ctx.agentLoop.create(SessionId('bare'), { provider: 'mock', model: 'm' })
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.deepEqual(Object.keys(adapter.requests[0] ?? {}).sort(), [
    'messages',
    'model',
    'provider',
    'sessionId',
    'signal',
  ])
  assert.deepEqual(headersOf(agent.session), [['initial', { config: { provider: 'mock', model: 'm' } }]])
  const [answer] = dataOf(agent.session, 'assistant/message')
  assert.deepEqual(Object.keys(answer ?? {}), ['turn', 'step', 'message', 'usage'])
})

test('the output limit of an agent holds for all its requests', async () => {
  const { sent, start, turn } = await setup(text('a'), text('b'))
  const agent = start({ maxTokens: 50 })
  await turn(agent, 'one')
  await turn(agent, 'two')
  assert.deepEqual(
    sent.map(({ maxTokens }) => maxTokens),
    [50, 50],
  )
  assert.equal(headersOf(agent.session).length, 1)
})

test('an adapter that calls its failure an abort has failed, where nobody cancelled', async () => {
  const failure = { message: 'stopped by the host', code: 'ABORTED' }
  const { ctx, start, turn } = await setup([{ type: 'finish', reason: { kind: 'aborted', failure } }])
  const agent = start()
  const asked: unknown[] = []
  ctx.on('agent/request-error', async (payload, next) => {
    asked.push(payload.failure)
    return next()
  })
  await turn(agent, 'one')
  assert.deepEqual(asked, [failure])
  assert.match(outline(agent.session.events), /rh rc ch se te:error\{ABORTED\}$/)
})

test("a provider without an adapter is a listener's to answer", async () => {
  const { ctx, adapter, start, turn } = await setup(text('routed'))
  const agent = start({ provider: 'elsewhere', model: 'm' })
  ctx.on('llm/stream', options => adapter.stream(options))
  await turn(agent, 'go')
  assert.match(outline(agent.session.events), /rh rc ch am se te:completed$/)
  assert.deepEqual(dataOf(agent.session, 'request/context'), [{ provider: 'elsewhere', model: 'm' }])
})

test('a provider that nobody serves fails the request with its code', async () => {
  const { ctx, start, turn } = await setup()
  const agent = start({ provider: 'elsewhere', model: 'm' })
  const asked: unknown[] = []
  ctx.on('agent/request-error', async ({ failure, retryPolicy }, next) => {
    asked.push([failure.code, retryPolicy])
    return next()
  })
  await turn(agent, 'go')
  assert.match(outline(agent.session.events), /rh rc ch se te:error\{NO_ADAPTER\}$/)
  assert.deepEqual(asked, [['NO_ADAPTER', undefined]])
})

test('what the model cannot do is an error of the request, not of the driver', async () => {
  const { ctx, start, turn } = await setup(text('ok'))
  const agent = start()
  ctx.once('agent/request', async (_payload, next) => ({ ...(await next()), reasoningEffort: 'high' }))
  await turn(agent, 'one')
  assert.match(outline(agent.session.events), / um se te:error\{UNSUPPORTED_REASONING_EFFORT\}$/)
  await turn(agent, 'two')
  assert.match(outline(agent.session.events), /te:completed$/)
})

test('each attempt is built anew: a changed route, a replaced history, but the same prompt', async () => {
  const { ctx, adapter, sent, start, turn } = await setup(fail('CONTEXT_WINDOW_EXCEEDED'), text('ok'))
  const agent = start()
  let assemblies = 0
  ctx.on('system-prompt/assemble', (_assembly, _context, next) => {
    assemblies++
    return next()
  })
  ctx.on('agent/request-error', async ({ failure }) => {
    assert.equal(failure.code, 'CONTEXT_WINDOW_EXCEEDED')
    const [first] = agent.session.surface.nodes
    agent.session.append('user/message', say('summary'), {
      surfaceOp: { op: 'replace', start: first ?? 0, end: first ?? 0 },
      sourceEventSeqs: [first ?? 0],
    })
    ctx.systemPrompt.section({ name: 'late', order: 5, text: 'late' })
    return { kind: 'retry' }
  })
  await turn(agent, 'a very long story')
  assert.equal(outline(agent.session.events), 'sp ts sp ss um rh rc ch um ch am se te:completed')
  assert.equal(assemblies, 1)
  assert.equal(adapter.requests.length, 2)
  assert.deepEqual(
    sent.map(({ messages }) => messages.map(({ content }) => content)),
    [[[{ type: 'text', text: 'a very long story' }]], [[{ type: 'text', text: 'summary' }]]],
  )
  assert.equal(sent[0]?.system, sent[1]?.system)
  assert.equal(agent.session.surface.replaceGeneration, 1)
})

test('a failed attempt is in no message and no later request, its chunks and usage stay', async () => {
  const half = [...text('half an answer').slice(0, -1), ...fail('SERVER')]
  const { ctx, sent, start, turn } = await setup(half, text('whole'), text('next'))
  const agent = start()
  ctx.on('agent/request-error', async () => ({ kind: 'retry' }))
  await turn(agent, 'one')
  await turn(agent, 'two')
  assert.ok(!JSON.stringify(sent.at(-1)?.messages).includes('half'))
  const chunks = dataOf(agent.session, 'assistant/chunk').map(({ chunk }) => chunk.type)
  assert.equal(chunks.filter(type => type === 'usage').length, 3)
})

test('a failure without a listener that retries ends the turn with all its facts', async () => {
  const failure = {
    code: 'RATE_LIMIT',
    message: 'slow down',
    status: 429,
    providerRetryAfterMs: 2000,
    requestId: 'r1',
  }
  const { start, turn } = await setup(fail('RATE_LIMIT', failure))
  const agent = start()
  await turn(agent, 'one')
  assert.deepEqual(dataOf(agent.session, 'turn/end')[0]?.reason, { kind: 'error', error: failure })
})

test('what a stream listener throws fails the turn without asking for a retry', async () => {
  const { ctx, start, turn } = await setup(text('abc'))
  const agent = start()
  const asked: unknown[] = []
  ctx.on('agent/request-error', async () => void asked.push(1) as undefined)
  ctx.on('llm/stream', async function* (_options, next) {
    for await (const chunk of next()) {
      yield chunk
      if (chunk.type === 'text-delta') throw new Error('middleware')
    }
  })
  await turn(agent, 'one')
  assert.match(outline(agent.session.events), /rh rc ch se te:error\{UNKNOWN\}$/)
  assert.deepEqual(asked, [])
})

test('a call keeps the adapter it was prepared with, the next step takes the new one', async () => {
  const { ctx, adapter, start } = await setup()
  const second = new ScriptedAdapter([text('from the second')])
  const agent = start({ provider: 'moving', model: 'm' })
  const registration = ctx.llm.registerAdapter(['moving'], adapter)
  adapter.push(toolCall('noop', {}))
  ctx.once('llm/stream', (_options, next) => {
    registration()
    ctx.llm.registerAdapter(['moving'], second)
    return next()
  })
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.equal(adapter.requests.length, 1)
  assert.equal(second.requests.length, 1)
  assert.match(outline(agent.session.events), /te:completed$/)
})

test('a stream that just ends counts as stopped, also with nothing in it', async () => {
  const { start, turn } = await setup(text('abc').slice(0, -1), [])
  const agent = start()
  await turn(agent, 'one')
  await turn(agent, 'two')
  assert.deepEqual(
    dataOf(agent.session, 'turn/end').map(({ reason }) => reason.kind),
    ['completed', 'completed'],
  )
  const messages = agent.session.events.filter(event => event.type === 'assistant/message')
  assert.deepEqual(messages[1]?.sourceEventSeqs, [])
  assert.deepEqual(messages[1]?.data.message.content, [])
  assert.deepEqual(
    agent.session.messages.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  )
})

test('context injected while a request is made joins the next one', async () => {
  const { ctx, sent, start, turn } = await setup(toolCall('noop', {}), text('ok'))
  const agent = start()
  ctx.once('agent/request', async (_payload, next) => {
    agent.inject(say('late'))
    return next()
  })
  await turn(agent, 'one')
  assert.deepEqual(
    sent.map(({ messages }) => messages.length),
    [1, 4],
  )
})

test('a prompt that contradicts itself fails its turn by name, and the agent goes on once it is mended', async () => {
  const { ctx, start, turn } = await setup(text('ok'), text('ok'), text('ok'))
  const agent = start()
  const { systemPrompt } = ctx
  const complete = (name: string) => systemPrompt.section({ name, order: 0, text: 'x', complete: true })
  const mistakes: readonly (readonly [make: () => (() => void)[], message: RegExp])[] = [
    [
      () => [systemPrompt.section({ name: 'where', order: 0, text: '{{nowhere}}' })],
      /variable "nowhere" in section "where" is unknown/,
    ],
    [() => [complete('one'), complete('two')], /"one" and "two" each claim to stand alone/],
    [
      () => [
        systemPrompt.tools(() => {
          throw new Error('no list')
        }),
      ],
      /a tool provider failed: no list/,
    ],
  ]
  for (const [make, message] of mistakes) {
    const undo = make()
    await turn(agent, 'wrong')
    const reason = dataOf(agent.session, 'turn/end').at(-1)?.reason
    assert.match(reason?.kind === 'error' ? reason.error.message : '', message)
    for (const each of undo) each()
    await turn(agent, 'right')
    assert.match(outline(agent.session.events), /te:completed$/)
  }
})

test('a tool order that names no tool fails the turn, not the driver', async () => {
  const ctx = new Context()
  for (const plugin of [LlmRuntime, SessionStore, ToolRuntime, AgentRegistry]) await ctx.plugin(plugin)
  await ctx.plugin(SystemPrompt, { toolOrder: ['noop', '<unlisted-tools>'] })
  await ctx.plugin(AgentLoop)
  ctx.llm.registerAdapter(['mock'], new ScriptedAdapter([text('ok')]))
  const agent = ctx.agentLoop.create(SessionId('ordered'), { provider: 'mock', model: 'm' })
  const turn = async (): Promise<string> => {
    agent.followup(say('go'))
    await agent.whenIdle()
    return outline(agent.session.events)
  }
  assert.match(await turn(), /te:error\{UNKNOWN\}$/)
  ctx.tools.register(tool('noop'))
  assert.match(await turn(), /te:completed$/)
})

test('what a pre-step listener registers counts for the very step', async () => {
  const { ctx, sent, start, turn } = await setup(text('ok'))
  const agent = start()
  ctx.once('agent/pre-step', async (_payload, next) => {
    ctx.tools.register(tool('brand-new'))
    ctx.systemPrompt.section({ name: 'new', order: 1, text: 'Something new.' })
    return next()
  })
  await turn(agent, 'one')
  assert.ok(sent[0]?.tools?.some(({ name }) => name === 'brand-new'))
  assert.match(sent[0]?.system ?? '', /Something new\.$/)
})

test('the prompt knows the route and the folder of its agent', async () => {
  const { ctx, sent, start } = await setup(text('ok'))
  start()
  ctx.systemPrompt.section({ name: 'where', order: 1, text: '{{provider}}/{{model}} in {{cwd}}' })
  const agent = ctx.agentLoop.create(SessionId('here'), { provider: 'mock', model: 'mock' }, { cwd: '/work' })
  ctx.on('llm/stream', (options, next) => (sent.push(options), next()), { prepend: true })
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.match(sent[0]?.system ?? '', /mock\/mock in \/work$/)
})
