import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, StreamChunk, TokenUsage } from '@dsh/protocol'
import { lintLog } from '../../core/invariants/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, reply, say, startMockProvider } from '../../testing/index.ts'
import { llmOpenAIChat } from '../llm-openai-chat/index.ts'
import { fail, text, toolCall } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { costOf, priceOf } from '../prices/index.ts'
import { retry } from '../retry/index.ts'
import { costIn } from './account.ts'
import { budget, spending } from './index.ts'
import type { BudgetInput } from './index.ts'

const price = { currency: 'USD', input: 1, output: 10, cacheRead: 0.1 } as const

function costing(usage: TokenUsage, entry: ScriptEntry): ScriptEntry {
  if (typeof entry === 'function' || entry === 'hang') throw new TypeError('not a list of chunks')
  return entry.map((chunk): StreamChunk => (chunk.type === 'usage' ? { type: 'usage', usage } : chunk))
}

async function setup(script: readonly ScriptEntry[], config: BudgetInput) {
  const { ctx, adapter, agent: create } = await createHarness(script)
  const plugin = ctx.plugin(budget, { prices: { 'mock/mock': price }, ...config })
  ctx.tools.register(defineTool({ name: 'work', description: '', parameters: {}, execute: () => 'ok' }))
  const agent = create()
  const turn = async (who = agent): Promise<string> => {
    who.followup(say('go'))
    await who.whenIdle()
    assert.deepEqual(lintLog(who.session.events), [])
    const event = who.session.events.findLast(({ type }) => type === 'turn/end')
    if (event?.type !== 'turn/end') return 'none'
    const { reason } = event.data
    return reason.kind === 'aborted' && reason.reason.kind === 'hook' ? reason.reason.reason : reason.kind
  }
  return { ctx, plugin, adapter, agent, create, turn }
}

const dollar = { inputTokens: 500_000, outputTokens: 40_000, cacheReadTokens: 1_000_000 }
const step = costing(dollar, toolCall('work', {}))
const last = costing(dollar, text('done'))

test('no request is sent once the money of the run is spent', async () => {
  const { turn, adapter } = await setup([step, step, step, last], { maxCost: 1.5 })
  assert.equal(await turn(), 'the limit of 1.5 USD of the run is reached: 2 USD were spent')
  assert.equal(adapter.requests.length, 2)
  assert.match(await turn(), /^the limit of 1\.5 USD/)
  assert.equal(adapter.requests.length, 2)
})

test('money in another currency than the price is counted at a rate', async () => {
  const { turn } = await setup([step, step, last], { maxCost: 13, currency: 'CNY' })
  assert.equal(await turn(), 'the limit of 13 CNY of the run is reached: 14 CNY were spent')
})

test('a limit of money on a model without a price asks nothing, and says what to set', async () => {
  const { turn, adapter } = await setup([last], { maxCost: 1, prices: {} })
  assert.equal(
    await turn(),
    'a limit of money needs the price of mock/mock, which is not known: set it as prices of budget in dsh.yml',
  )
  assert.equal(adapter.requests.length, 0)
})

test('tokens count whoever served them', async () => {
  const { turn, adapter } = await setup([step, step, last], { maxTokens: 1_540_001 })
  assert.equal(await turn(), 'the limit of 1540001 tokens of the run is reached: 3080000 were used')
  assert.equal(adapter.requests.length, 2)
})

test('a model that does not say what it takes is asked once and no more, where money or tokens count', async () => {
  const silent = (entry: ScriptEntry): ScriptEntry =>
    Array.isArray(entry) ? entry.filter(({ type }: StreamChunk) => type !== 'usage') : entry
  const script = [silent(step), silent(last)]
  const why = 'cannot be kept: mock/mock does not say what an answer took'
  const cases: readonly (readonly [config: BudgetInput, end: string, asked: number])[] = [
    [{ maxTokens: 9 }, `a limit of tokens ${why}`, 1],
    [{ session: { maxCost: 9 } }, `a limit of money ${why}`, 1],
    [
      { maxCost: 9, prices: { 'mock/mock': { ...price, input: 0, output: 0, cacheRead: 0 } } },
      'completed',
      2,
    ],
    [{ maxSteps: 9 }, 'completed', 2],
  ]
  for (const [config, end, asked] of cases) {
    const { turn, adapter } = await setup(script, config)
    assert.equal(await turn(), end)
    assert.equal(adapter.requests.length, asked)
  }
})

test('of turns and steps exactly as many begin as were allowed', async () => {
  const steps = await setup([step, step, step, last], { maxSteps: 2 })
  assert.equal(await steps.turn(), 'the limit of 2 steps of the run is reached')
  assert.equal(steps.adapter.requests.length, 2)
  const turns = await setup([last, last, last], { maxTurns: 1 })
  assert.deepEqual(
    [await turns.turn(), await turns.turn()],
    ['completed', 'the limit of 1 turn of the run is reached'],
  )
  assert.equal(turns.adapter.requests.length, 1)
})

test('a request that is sent again is looked at too', async () => {
  const { ctx, turn, adapter } = await setup(
    [
      costing(dollar, [{ type: 'usage', usage: dollar }, ...(fail('OVERLOADED') as readonly StreamChunk[])]),
      last,
    ],
    { maxCost: 1 },
  )
  ctx.on('agent/request-error', () => Promise.resolve({ kind: 'retry' }))
  assert.equal(await turn(), 'the limit of 1 USD of the run is reached: 1 USD were spent')
  assert.equal(adapter.requests.length, 1)
})

test('all sessions of a run share its budget, and a session has its own over all runs', async () => {
  const run = await setup([step, last, last], { maxCost: 2 })
  assert.equal(await run.turn(), 'completed')
  const other = run.create()
  assert.match(await run.turn(other), /^the limit of 2 USD of the run/)

  const session = await setup([step, last, last, last], { session: { maxCost: 2 } })
  assert.equal(await session.turn(), 'completed')
  assert.equal(await session.turn(session.create()), 'completed')
  assert.match(await session.turn(), /^the limit of 2 USD of the session/)
})

test('what a session spent before it was resumed counts for the session, not for the run', async () => {
  const { ctx, agent, turn } = await setup([step, last, last], { maxCost: 2, session: { maxCost: 3 } })
  await turn()
  const seed = JSON.parse(JSON.stringify(agent.session.events)) as SessionEvent[]
  const { ctx: next, adapter } = await createHarness([last, last])
  await next.plugin(budget, { prices: { 'mock/mock': price }, maxCost: 2, session: { maxCost: 3 } })
  const agentOptions = { provider: 'mock', model: 'mock' }
  const { agent: again } = await next.agents.create({ sessionId: SessionId('again'), seed, agentOptions })
  assert.equal(again.session.fold(spending).turns, 1)
  assert.equal(await turn(again), 'completed')
  assert.match(await turn(again), /^the limit of 3 USD of the session/)
  assert.equal(adapter.requests.length, 1)
  await ctx.dispose()
})

test('the time ends a turn in the middle of its request, and what waits stays in the queue', async t => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  t.after(() => mock.timers.reset())
  const { adapter, agent, turn } = await setup(['hang'], { maxSeconds: 60 })
  const end = turn()
  while (adapter.requests.length === 0) await Promise.resolve()
  agent.followup(say('and then'))
  mock.timers.tick(60_000)
  assert.equal(await end, 'the limit of 60 seconds of the run is reached')
  assert.equal(agent.inbox.nextTurn.length, 1)
})

test('time between turns does not count', async t => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  t.after(() => mock.timers.reset())
  const { turn } = await setup([last, last], { session: { maxSeconds: 60 } })
  assert.equal(await turn(), 'completed')
  mock.timers.tick(1_000_000)
  assert.equal(await turn(), 'completed')
})

test('without a limit nothing ends a turn, and with the plugin the limits go', async () => {
  const { plugin, turn } = await setup([step, step, last], { maxSteps: 1 })
  await plugin.dispose()
  assert.equal(await turn(), 'completed')
  const none = await setup([step, last], {})
  assert.equal(await none.turn(), 'completed')
})

test('limits that mean nothing are refused', async () => {
  const { ctx } = await createHarness()
  for (const config of [{ maxCost: 0 }, { maxTokens: 1.5 }, { maxSeconds: 1e12 }, { maxDollars: 1 }])
    await assert.rejects(async () => ctx.plugin(budget, config as BudgetInput))
})

test('what the meter says is what the provider charged, across cached prompts, failures and another try', async t => {
  const provider = await startMockProvider({
    script: [
      reply.toolCall('work', {}, { text: 'word '.repeat(200) }),
      reply.status(503, { headers: { 'retry-after': '0' } }),
      reply.toolCall('work', {}),
      reply.text('done'),
    ],
  })
  t.after(() => provider.close())
  const { ctx } = await createHarness()
  await ctx.plugin(retry)
  await ctx.plugin(llmOpenAIChat, { env: provider.env })
  ctx.tools.register(
    defineTool({ name: 'work', description: '', parameters: {}, execute: () => 'x '.repeat(500) }),
  )
  const agent = ctx.agentLoop.create(SessionId('m'), { provider: 'deepseek', model: 'deepseek-flash' })
  agent.followup(say('go '.repeat(300)))
  await agent.whenIdle()
  const { spent, tokens } = agent.session.fold(spending)
  const { inputTokens, cacheReadTokens, outputTokens } = provider.ledger.total
  assert.equal(provider.requests.length, 4)
  assert.ok(cacheReadTokens > 0)
  assert.equal(tokens, inputTokens + cacheReadTokens + outputTokens)
  const when = spent[0]?.from ?? 0
  const flash = priceOf({ provider: 'deepseek', model: 'deepseek-flash' })
  assert.ok(flash)
  const charged = costOf({ inputTokens, cacheReadTokens, outputTokens }, flash, when)
  const metered = costIn({ currency: 'CNY', prices: {} }, spent) ?? 0
  assert.ok(Math.abs(metered - charged) < 1e-12 && charged > 0)
})
