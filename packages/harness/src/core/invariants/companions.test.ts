import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { StreamChunk } from '@dsh/protocol'
import { text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { markLoopRequest } from '../llm/index.ts'
import { scopeTarget } from '../scope/index.ts'
import { defineTool } from '../tools/index.ts'
import { Invariants } from './index.ts'
import type { InvariantsConfig } from './index.ts'

async function setup(script: readonly ScriptEntry[], config: InvariantsConfig = {}) {
  const harness = await createHarness(script)
  const { ctx } = harness
  await ctx.plugin(Invariants, config)
  ctx.tools.register(
    defineTool({ name: 'noop', description: 'Does nothing.', parameters: {}, execute: () => 'ok' }),
  )
  const problems: string[] = []
  ctx.on('internal/error', error => void problems.push((error as Error).message))
  const turn = async (agent = harness.agent()): Promise<string> => {
    agent.followup(say('go'))
    await agent.whenIdle()
    return outline(agent.session.events)
  }
  return { ...harness, problems, turn }
}

test('runs that go well break no rule, replaced histories and failed streams included', async () => {
  const failed: StreamChunk[] = [
    ...text('half').slice(0, 2),
    { type: 'finish', reason: { kind: 'error', failure: { message: 'no', code: 'SERVER' } } },
  ]
  const {
    ctx,
    agent: make,
    problems,
    turn,
  } = await setup([toolCall('noop', {}), failed, ...['ok', 'b', 'c'].map(words => text(words))])
  const agent = make()
  ctx.once('agent/request-error', async () => ({ kind: 'retry' }))
  await turn(agent)
  const [start = 0] = agent.session.surface.nodes
  const end = agent.session.surface.nodes.at(-1) ?? 0
  agent.session.append('user/message', say('summary'), {
    surfaceOp: { op: 'replace', start, end },
    sourceEventSeqs: [...agent.session.surface.nodes],
  })
  await turn(agent)
  await turn(make())
  assert.match(outline(agent.session.events), /te:completed$/)
  assert.deepEqual(problems, [])
})

test('an event for another scope than its agent is told', async () => {
  const { ctx, agent, problems } = await setup([])
  const [a, b] = [agent('a'), agent('b')]
  ctx.emit(scopeTarget(b), 'agent/status', { agent: a, status: 'idle' })
  ctx.emit('agent/status', { agent: a, status: 'idle' })
  const { signal } = new AbortController()
  const execution = { callId: CallId('c'), rootCallId: CallId('c'), name: 'x', arguments: {}, agent: a }
  const call = { ...execution, token: Symbol('c'), signal }
  await ctx.waterfall(
    scopeTarget(undefined),
    'tools/pre-execute',
    call,
    async () => ({ kind: 'allow' }) as const,
  )
  await ctx.waterfall(
    scopeTarget(a),
    'system-prompt/assemble',
    { sections: [], contexts: [], tools: [], variables: {} },
    { scope: b },
    async () => ({ sections: [], contexts: [], tools: [], variables: {} }),
  )
  assert.deepEqual(
    problems,
    ['agent/status', 'agent/status', 'tools/pre-execute', 'system-prompt/assemble'].map(
      name => `carriers: "${name}" is about one scope and was dispatched for another`,
    ),
  )
  ctx.emit(scopeTarget(a), 'agent/status', { agent: a, status: 'idle' })
  assert.equal(problems.length, 4)
})

test('a loop request that its log does not give is told', async () => {
  const { ctx, agent: make, problems, turn } = await setup([text('ok'), text('more')])
  const agent = make()
  await turn(agent)
  const request = markLoopRequest(
    Object.freeze({
      provider: 'mock',
      model: 'mock',
      messages: agent.session.messages,
      sessionId: agent.id,
    }),
  )
  await Array.fromAsync(ctx.llm.stream(request))
  assert.deepEqual(problems, [
    `requests: request of session "${agent.id}": system of the request is not that of the last header`,
  ])
})

test('a stream that breaks the grammar is told with its route, and fails the turn where that is the mode', async () => {
  const wild: StreamChunk[] = [
    { type: 'text-delta', index: 0, text: 'no start' },
    { type: 'finish', reason: { kind: 'stop' } },
  ]
  const lax = await setup([wild, text('ok').slice(0, -1)])
  assert.match(await lax.turn(), /te:completed$/)
  assert.match(await lax.turn(), /te:completed$/)
  assert.deepEqual(lax.problems, [
    'streams: stream of mock/mock: text-delta for block 0, which is not open',
    'streams: stream of mock/mock: the stream ended without a finish',
  ])
  const strict = await setup([wild], { mode: 'refuse' })
  const agent = strict.agent()
  assert.match(await strict.turn(agent), /rh rc se te:error\{UNKNOWN\}$/)
  const reason = agent.session.last('turn/end')?.data.reason
  assert.equal(
    reason?.kind === 'error' && reason.error.message,
    'streams: stream of mock/mock: text-delta for block 0, which is not open',
  )
})

test('each of them may be switched off by its name', async () => {
  const wild: StreamChunk[] = [{ type: 'finish', reason: { kind: 'stop' } }, ...text('x')]
  const { problems, turn } = await setup([wild.slice(0, 1).concat(text('x').slice(0, 2))], {
    block: ['^streams$'],
  })
  await turn()
  assert.deepEqual(problems, [])
})
