import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContentBlock, Message, SessionEvent, SessionEventType } from '@dsh/protocol'
import { fail, text, toolCall, toolCalls } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import type { Agent } from '../agent/index.ts'
import { defineTool } from '../tools/index.ts'

const greet = defineTool({
  name: 'greet',
  description: 'Greet somebody by name.',
  parameters: { name: { type: 'string', required: true } },
  execute: ({ name }) => `Hello, ${name}!`,
})

async function setup(...script: ScriptEntry[]) {
  const harness = await createHarness(script)
  const { ctx, adapter } = harness
  ctx.tools.register(greet)
  const agent = harness.agent()
  const live: string[] = []
  ctx.on('agent/status', ({ status }) => void live.push(status))
  ctx.on('agent/error', ({ turn, step }) => void live.push(`error ${turn}.${step}`))
  ctx.on('agent/parked', ({ pending, returned }) => {
    live.push(`parked ${pending.map(wordsOf).join()} returned ${returned.map(wordsOf).join()}`)
  })
  const finish = async (): Promise<string> => {
    await agent.whenIdle()
    return outline(agent.session.events)
  }
  return { ctx, adapter, agent, live, finish }
}

function wordsOf({ content }: Pick<Message, 'content'>): string {
  return content.map(blockWords).join()
}

function blockWords(block: ContentBlock): string {
  if (block.type === 'text') return block.text
  if (block.type === 'tool-call') return `${block.name}(${block.arguments})`
  return block.type === 'tool-result' ? wordsOf(block) : block.type
}

function eventsOf<Type extends SessionEventType>(agent: Agent, type: Type): SessionEvent<Type>[] {
  return agent.session.events.filter(event => event.type === type) as SessionEvent<Type>[]
}

function entered(agent: Agent): string[] {
  return eventsOf(agent, 'user/message').map(event => wordsOf(event.data))
}

test('a followup is one turn of one step', async () => {
  const { adapter, agent, live, finish } = await setup(text('Hello from mock'))
  agent.followup(say('hi'))
  assert.equal(agent.status, 'running')
  assert.equal(outline(agent.session.events), 'sp ts sp')
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am se te:completed')
  assert.deepEqual(live, ['running', 'idle'])
  assert.equal(adapter.requests.length, 1)
  const chunks = eventsOf(agent, 'assistant/chunk')
  assert.equal(chunks.length, 'Hello from mock'.length + 4)
  const [answer] = eventsOf(agent, 'assistant/message')
  assert.deepEqual(
    answer?.sourceEventSeqs,
    chunks.map(({ seq }) => seq),
  )
  assert.deepEqual(answer?.data.usage, { inputTokens: 1, outputTokens: 15 })
  assert.deepEqual(answer?.data.message.source, { kind: 'model', provider: 'mock', model: 'mock' })
  assert.deepEqual(
    eventsOf(agent, 'agent/inbox/spliced').map(({ data }) => ({ ...data, inserted: data.inserted.length })),
    [
      { target: 'next-turn', start: 0, inserted: 1 },
      { target: 'next-turn', start: 0, removedCount: 1, inserted: 0 },
    ],
  )
  assert.equal(eventsOf(agent, 'request/header')[0]?.data.reason, 'initial')
  assert.deepEqual(eventsOf(agent, 'request/context')[0]?.data, { provider: 'mock', model: 'mock' })
})

test('a tool call is answered and the turn goes on with a second step', async () => {
  const { adapter, agent, finish } = await setup(toolCall('greet', { name: 'Rex' }), text('Done'))
  agent.followup(say('greet Rex'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am tc tr se ss ch am se te:completed')
  assert.equal(adapter.requests.length, 2)
  const [, second] = adapter.requests
  assert.deepEqual(
    second?.messages.map(({ role, content }) => [role, blockWords(content[0] as ContentBlock)]),
    [
      ['user', 'greet Rex'],
      ['assistant', 'greet({"name":"Rex"})'],
      ['user', 'Hello, Rex!'],
    ],
  )
  const [call] = eventsOf(agent, 'tool/call')
  const [result] = eventsOf(agent, 'tool/result')
  assert.equal(call?.data.arguments, '{"name":"Rex"}')
  assert.deepEqual(result?.sourceEventSeqs, [call?.seq])
  assert.deepEqual(result?.data.message.source, { kind: 'tool', callId: call?.data.callId })
  assert.equal(result?.data.error, undefined)
})

test('steering an idle agent starts a turn', async () => {
  const { agent, live, finish } = await setup(text('ok'))
  agent.steer(say('look'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am se te:completed')
  assert.deepEqual(
    new Set(eventsOf(agent, 'agent/inbox/spliced').map(({ data }) => data.target)),
    new Set(['next-step']),
  )
  assert.deepEqual(live, ['running', 'idle'])
})

test('what was on the screen when a turn is cancelled is in the next request', async () => {
  const { ctx, adapter, agent, live, finish } = await setup('hang', text('again'))
  ctx.on('session/event', (_session, event) => {
    if (
      event.type === 'assistant/chunk' &&
      event.data.chunk.type === 'text-delta' &&
      event.data.chunk.text === 'partial'
    )
      agent.cancel({ kind: 'user' })
  })
  agent.followup(say('go'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am(interrupted) se te:aborted{user}')
  assert.deepEqual(live, ['running', 'idle'])
  const [prefix] = eventsOf(agent, 'assistant/message')
  assert.deepEqual(prefix?.data.message.content, [{ type: 'text', text: 'partial' }])
  assert.deepEqual(
    prefix?.sourceEventSeqs,
    eventsOf(agent, 'assistant/chunk').map(({ seq }) => seq),
  )
  agent.followup(say('go on'))
  await agent.whenIdle()
  assert.deepEqual(
    adapter.requests[1]?.messages.map(({ role, content }) => [role, wordsOf({ content })]),
    [
      ['user', 'go'],
      ['assistant', 'partial'],
      ['user', 'go on'],
    ],
  )
})

test('a slash command is logged in a pair and opens no turn, an unknown one leaves no trace', async () => {
  const { ctx, agent } = await setup()
  const { signal } = new AbortController()
  ctx.commands.register({
    name: 'ping',
    description: 'Answers pong.',
    handler: () => ({ kind: 'success', text: 'pong' }),
  })
  const done = await ctx.commands.execute(agent, '/ping hello', signal)
  assert.deepEqual(done?.result, { kind: 'success', text: 'pong' })
  assert.equal(await ctx.commands.execute(agent, '/x', signal), undefined)
  assert.equal(outline(agent.session.events), 'command/run command/done')
})

test('prompts in a burst are turns of their own, in order, while the agent stays running', async () => {
  const { agent, live, finish } = await setup(text('1'), text('2'), text('3'))
  for (const words of ['a', 'b', 'c']) agent.followup(say(words))
  await finish()
  assert.deepEqual(entered(agent), ['a', 'b', 'c'])
  assert.deepEqual(
    eventsOf(agent, 'turn/start').map(({ data }) => data.turn),
    [1, 2, 3],
  )
  assert.deepEqual(
    eventsOf(agent, 'turn/end').map(({ data }) => data.reason.kind),
    Array(3).fill('completed'),
  )
  assert.deepEqual(
    eventsOf(agent, 'step/start').map(({ data }) => data.step),
    [1, 1, 1],
  )
  assert.deepEqual(live, ['running', 'idle'])
})

test('a failed request ends the turn, and what is queued waits for the next wake, first in first out', async () => {
  const { ctx, agent, live, finish } = await setup(fail('QUOTA', { status: 402 }), text('1'), text('2'))
  const order: string[] = []
  ctx.on('agent/error', () => void order.push('agent/error'))
  ctx.on('session/event', (_session, { type }) => void order.push(type))
  agent.followup(say('a'))
  agent.followup(say('b'))
  assert.equal(await finish(), 'sp ts sp sp ss um rh rc ch se te:error{QUOTA}')
  assert.deepEqual(live, ['running', 'error 1.1', 'parked b returned ', 'idle'])
  assert.deepEqual(order.slice(-3), ['step/end', 'agent/error', 'turn/end'])
  const [end] = eventsOf(agent, 'turn/end')
  assert.deepEqual(end?.data.reason, {
    kind: 'error',
    error: { message: 'scripted failure QUOTA', code: 'QUOTA', status: 402 },
  })
  agent.followup(say('c'))
  await agent.whenIdle()
  assert.deepEqual(entered(agent), ['a', 'b', 'c'])
})

test('a retried request stays in its step, and the failed attempt is in no message', async () => {
  const { ctx, adapter, agent, finish } = await setup(fail('SERVER'), text('ok'))
  const asked: unknown[] = []
  ctx.on('agent/request-error', async ({ turn, step, provider, failure, retryPolicy }) => {
    asked.push([turn, step, provider, failure.code, retryPolicy?.mode])
    return { kind: 'retry' }
  })
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am se te:completed')
  assert.deepEqual(asked, [[1, 1, 'mock', 'SERVER', 'normal']])
  const chunks = eventsOf(agent, 'assistant/chunk')
  assert.equal(chunks[0]?.data.chunk.type, 'finish')
  const [answer] = eventsOf(agent, 'assistant/message')
  assert.deepEqual(
    answer?.sourceEventSeqs,
    chunks.slice(1).map(({ seq }) => seq),
  )
  assert.deepEqual(
    adapter.requests.map(({ messages }) => messages.length),
    [1, 1],
  )
})

test('an answer cut off by the output limit keeps its text, drops its calls and says how many', async () => {
  const [finish, ...rest] = [...toolCall('greet', { name: 'Rex' })].reverse()
  assert.equal(finish?.type, 'finish')
  const cut = [...rest.reverse(), { type: 'finish', reason: { kind: 'max-tokens' } } as const]
  const { agent, finish: done } = await setup(cut)
  agent.followup(say('a'))
  assert.equal(await done(), 'sp ts sp ss um rh rc ch am se te:max-tokens')
  const [answer] = eventsOf(agent, 'assistant/message')
  assert.deepEqual(answer?.data.message.content, [])
  assert.equal(answer?.data.truncatedToolCalls, 1)
})

test('a turn that was cut off once ends so, and still answers the tool calls that follow', async () => {
  const cut = [...text('long').slice(0, -1), { type: 'finish', reason: { kind: 'max-tokens' } } as const]
  const { ctx, adapter, agent, finish } = await setup(cut, toolCall('greet', { name: 'Rex' }), text('Done'))
  ctx.once('agent/turn-stopping', () => agent.steer(say('go on')))
  agent.followup(say('a'))
  assert.equal(
    await finish(),
    'sp ts sp ss um rh rc ch am se sp sp ss um ch am tc tr se ss ch am se te:max-tokens',
  )
  assert.equal(adapter.requests.length, 3)
})

test('a rejected step asks no model and gives its batch back', async () => {
  const { ctx, adapter, agent, live, finish } = await setup()
  ctx.on('agent/pre-step', async () => ({ kind: 'reject' }))
  agent.followup(say('a'))
  agent.followup(say('b'))
  assert.equal(await finish(), 'sp ts sp sp te:blocked')
  assert.equal(adapter.requests.length, 0)
  assert.deepEqual(live, ['running', 'parked b returned a', 'idle'])
})

test('context injected while a tool runs enters behind its result', async () => {
  const { ctx, agent, finish } = await setup(toolCall('greet', { name: 'Rex' }), text('Done'))
  ctx.on('tools/execute', (_execution, next) => {
    agent.inject(say('by the way'))
    return next()
  })
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am tc sp tr se sp ss um ch am se te:completed')
  assert.deepEqual(entered(agent), ['a', 'by the way'])
})

test('steering while tools run enters behind all of their results', async () => {
  const calls = toolCalls([
    { name: 'greet', args: { name: 'a' } },
    { name: 'greet', args: { name: 'b' } },
  ])
  const { ctx, agent, finish } = await setup(calls, text('Done'))
  ctx.once('tools/result', () => agent.steer(say('wait')))
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am tc sp tr tc tr se sp ss um ch am se te:completed')
})

test('a listener that steers when the turn would stop gets another step in the same turn', async () => {
  const { ctx, agent, finish } = await setup(text('1'), text('2'))
  let stops = 0
  ctx.on('agent/turn-stopping', () => {
    if (++stops === 1) agent.steer(say('one more'))
  })
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am se sp sp ss um ch am se te:completed')
  assert.equal(stops, 2)
})

test('a tool that concludes the turn spares the request, unless something was steered', async () => {
  const conclude = defineTool({
    name: 'conclude',
    description: 'Ends the turn.',
    parameters: {},
    execute: (_args, exec) => {
      exec.concludeTurn()
      return 'over'
    },
  })
  const { ctx, adapter, agent, finish } = await setup(
    toolCall('conclude', {}),
    toolCall('conclude', {}),
    text('ok'),
  )
  ctx.tools.register(conclude)
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am tc tr se te:completed')
  assert.equal(adapter.requests.length, 1)
  ctx.once('tools/result', () => agent.steer(say('wait')))
  agent.followup(say('b'))
  await agent.whenIdle()
  assert.equal(adapter.requests.length, 3)
  assert.deepEqual(entered(agent), ['a', 'b', 'wait'])
  assert.equal(eventsOf(agent, 'turn/end').length, 2)
})

test('only a tool that succeeded concludes the turn', async () => {
  const { ctx, adapter, agent, finish } = await setup(toolCall('conclude', {}), text('ok'))
  ctx.tools.register(
    defineTool({
      name: 'conclude',
      description: 'Fails.',
      parameters: {},
      execute: (_args, exec) => {
        exec.concludeTurn()
        throw new Error('no')
      },
    }),
  )
  agent.followup(say('a'))
  await finish()
  assert.equal(adapter.requests.length, 2)
})

test('a failure after finished tools is tried again in its step, and no tool runs twice', async () => {
  const { ctx, agent, finish } = await setup(
    toolCall('mark', {}),
    fail('RATE_LIMIT'),
    fail('RATE_LIMIT'),
    text('Done'),
  )
  let marks = 0
  ctx.tools.register(
    defineTool({ name: 'mark', description: 'Marks.', parameters: {}, execute: () => `mark ${++marks}` }),
  )
  ctx.on('agent/request-error', async () => ({ kind: 'retry' }))
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am tc tr se ss ch am se te:completed')
  assert.equal(marks, 1)
})

test('a call in an attempt that broke off is not run, its repetition is', async () => {
  const call = toolCall('greet', { name: 'Rex' }, 'call-1')
  const { agent, ctx, finish } = await setup(
    [...call.slice(0, -1), ...fail('STREAM_CLOSED')],
    call,
    text('Done'),
  )
  ctx.on('agent/request-error', async () => ({ kind: 'retry' }))
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am tc tr se ss ch am se te:completed')
  assert.equal(eventsOf(agent, 'tool/call').length, 1)
})

test('a history that was replaced between two steps is what the next request holds', async () => {
  const { ctx, adapter, agent, finish } = await setup(toolCall('greet', { name: 'Rex' }), text('Done'))
  ctx.on('agent/pre-step', async ({ step }, next) => {
    if (step === 2) {
      const nodes = agent.session.surface.nodes.slice(0, 3)
      const [start = 0, , end = 0] = nodes
      agent.session.append('user/message', say('summary'), {
        surfaceOp: { op: 'replace', start, end },
        sourceEventSeqs: nodes,
      })
    }
    return next()
  })
  agent.followup(say('a'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch am tc tr se um ss ch am se te:completed')
  assert.deepEqual(adapter.requests[1]?.messages.map(wordsOf), ['summary'])
  assert.equal(agent.session.surface.replaceGeneration, 1)
  assert.equal(wordsOf(eventsOf(agent, 'user/message')[0]?.data ?? say('')), 'a')
})
