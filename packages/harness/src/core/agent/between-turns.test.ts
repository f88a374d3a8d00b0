import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { SessionId } from '@dsh/protocol'
import { text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { defineTool } from '../tools/index.ts'
import { betweenTurns } from './index.ts'
import type { Agent } from './index.ts'

async function setup(...script: ScriptEntry[]) {
  const harness = await createHarness(script)
  const waits: string[][] = []
  const turns = betweenTurns(harness.ctx, {
    waitsFor: agents => void waits.push(agents.map(({ id }) => id)),
  })
  return { ...harness, waits, ...turns }
}

/** An answer that is held back until it is let go. */
function held(answer: ScriptEntry): { readonly entry: ScriptEntry; letGo(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { entry: () => promise.then(() => answer as never), letGo: resolve }
}

async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  promise.finally(() => (settled = true)).catch(() => {})
  for (let i = 0; i < 5; i++) await nextTask()
  return settled
}

test('the drain waits for all agents at once and says for whom, and those that are idle go on meanwhile', async () => {
  const slow = held(text('slow'))
  const { agent, drain, waits } = await setup(slow.entry, text('quick'))
  const [busy, idle] = [agent('busy'), agent('idle')]
  busy.followup(say('a'))
  await nextTask()
  const drained = drain()
  assert.equal(await hasSettled(drained), false)
  idle.followup(say('b'))
  await idle.whenIdle()
  assert.match(outline(idle.session.events), /te:completed$/)
  assert.equal(await hasSettled(drained), false)
  slow.letGo()
  const release = await drained
  assert.match(outline(busy.session.events), /te:completed$/)
  assert.deepEqual(waits, [['busy']])
  release()
})

test('what is sent while agents are held is answered after the release, each once', async () => {
  const { agent, drain, adapter } = await setup(text('1'), text('2'))
  const [first, second] = [agent('first'), agent('second')]
  const release = await drain()
  first.followup(say('a'))
  second.steer(say('b'))
  for (let i = 0; i < 5; i++) await nextTask()
  assert.equal(adapter.requests.length, 0)
  assert.deepEqual([first.status, second.status], ['idle', 'idle'])
  release()
  await Promise.all([first.whenIdle(), second.whenIdle()])
  assert.equal(adapter.requests.length, 2)
  for (const { session } of [first, second]) assert.match(outline(session.events), /te:completed$/)
})

test('an agent made while others are held begins after the release, also with what its set-up said', async () => {
  const { ctx, drain, adapter } = await setup(text('1'))
  const release = await drain()
  const { agent } = await ctx.agents.create({
    sessionId: SessionId('new'),
    agentOptions: { provider: 'mock', model: 'mock' },
    setup: agentCtx => agentCtx.agent?.followup(say('early')),
  })
  for (let i = 0; i < 5; i++) await nextTask()
  assert.equal(adapter.requests.length, 0)
  release()
  await agent.whenIdle()
  assert.match(outline(agent.session.events), /te:completed$/)
})

test('a user who cancels a held agent does not start it, and what comes after that is answered', async () => {
  const { agent, drain, adapter } = await setup(text('1'))
  const one = agent()
  const release = await drain()
  one.followup(say('dropped'))
  one.cancel({ kind: 'user' })
  one.followup(say('kept'))
  for (let i = 0; i < 5; i++) await nextTask()
  assert.equal(adapter.requests.length, 0)
  release()
  await one.whenIdle()
  assert.match(JSON.stringify(one.session.messages), /kept/)
  assert.doesNotMatch(JSON.stringify(one.session.messages), /dropped/)
})

test('a held agent can be disposed, and so can the plugins that drive agents', async () => {
  const { ctx, drain } = await setup()
  const handle = await ctx.agents.create({ sessionId: SessionId('one') })
  ctx.agentLoop.create(SessionId('two'))
  const release = await drain()
  await handle.dispose()
  await [...ctx.fiber.children].find(({ name }) => name === 'AgentLoop')?.dispose()
  assert.deepEqual(ctx.agents.list(), [])
  release()
})

test('an agent that is being disposed is waited for as long as its turn has not ended', async () => {
  const ending = Promise.withResolvers<void>()
  const { ctx, drain, agent } = await setup(toolCall('stubborn', {}))
  ctx.tools.register(
    defineTool({
      name: 'stubborn',
      description: 'Ends when it likes.',
      parameters: { type: 'object', properties: {} },
      execute: () => ending.promise.then(() => 'late'),
    }),
  )
  const handle = await ctx.agents.create({
    sessionId: SessionId('one'),
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  agent('idle')
  handle.agent.followup(say('a'))
  for (let i = 0; i < 5; i++) await nextTask()
  const disposed = handle.dispose()
  const drained = drain()
  assert.equal(await hasSettled(drained), false)
  assert.equal(handle.agent.status, 'running')
  ending.resolve()
  const release = await drained
  assert.equal(handle.agent.session.last('turn/end')?.data.reason.kind, 'aborted')
  await disposed
  release()
})

test('a held agent that was cancelled and is then disposed keeps nobody waiting', async () => {
  const { ctx, drain } = await setup()
  const handle = await ctx.agents.create({ sessionId: SessionId('one') })
  const release = await drain()
  handle.agent.followup(say('a'))
  handle.agent.cancel({ kind: 'user' })
  await handle.dispose()
  assert.deepEqual(ctx.agents.list(), [])
  release()
})

test('a held agent is idle to all who look, and refuses maintenance', async () => {
  const { agent, drain } = await setup(text('1'))
  const one = agent('one')
  const release = await drain()
  one.followup(say('a'))
  assert.equal(one.status, 'idle')
  await one.whenIdle()
  assert.throws(() => one.runMaintenance(() => Promise.resolve()), {
    code: 'AGENT_BUSY',
    message: 'agent "one" is busy: held',
  })
  release()
  await one.whenIdle()
  assert.match(outline(one.session.events), /te:completed$/)
})

test('two who hold an agent must both let go', async () => {
  const { agent, drain, adapter } = await setup(text('1'))
  const one = agent()
  const [first, second] = [await drain(), await drain()]
  one.followup(say('a'))
  first()
  first()
  for (let i = 0; i < 5; i++) await nextTask()
  assert.equal(adapter.requests.length, 0)
  second()
  await one.whenIdle()
  assert.equal(adapter.requests.length, 1)
})

test('an agent that somebody else drives is held by maintenance', async () => {
  const { agent } = await setup()
  const driven = agent('driven')
  const { session, inbox, options } = driven
  const maintenance: string[] = []
  const registry = await createHarness()
  const foreign: Agent = {
    id: driven.id,
    session,
    inbox,
    options,
    status: 'idle',
    ctx: driven.ctx,
    cancel: () => {},
    whenIdle: () => Promise.resolve(),
    send: () => {},
    followup: () => {},
    steer: () => {},
    inject: () => {},
    async runMaintenance(job) {
      maintenance.push('begins')
      const result = await job(new AbortController().signal)
      maintenance.push('ends')
      return result
    },
  }
  registry.ctx.agents.register(foreign)
  const release = await betweenTurns(registry.ctx).drain()
  await nextTask()
  assert.deepEqual(maintenance, ['begins'])
  release()
  await nextTask()
  assert.deepEqual(maintenance, ['begins', 'ends'])
})

test('maintenance counts as work, and its end lets the drain go on', async () => {
  const { agent, drain } = await setup()
  const one = agent()
  const job = Promise.withResolvers<void>()
  const done = one.runMaintenance(() => job.promise)
  const drained = drain()
  assert.equal(await hasSettled(drained), false)
  job.resolve()
  await done
  const release = await drained
  release()
})

test('the guard refuses code that an agent runs, also in a promise it left behind while its turn goes on', async () => {
  const { ctx, agent, guard, drain } = await setup(toolCall('change', {}), text('done'))
  const refusals: unknown[] = []
  ctx.tools.register(
    defineTool({
      name: 'change',
      description: 'Changes plugins.',
      parameters: { type: 'object', properties: {} },
      execute: async () => {
        assert.throws(guard, {
          code: 'AGENT_BUSY',
          message: 'agent "one" cannot wait for its own turn to end',
        })
        void Promise.resolve()
          .then(guard)
          .catch((error: { code: string }) => refusals.push(error.code))
        return 'ok'
      },
    }),
  )
  const one = agent('one')
  one.followup(say('go'))
  await one.whenIdle()
  assert.deepEqual(refusals, ['AGENT_BUSY'])
  guard()
  const release = await drain()
  release()
})

test('without agents there is nothing to wait for, and holding ends with the plugin that holds', async () => {
  const { ctx, agent, adapter } = await setup(text('1'))
  const host = ctx.plugin(() => {})
  const release = await betweenTurns(host.ctx).drain()
  const one = agent()
  one.followup(say('a'))
  for (let i = 0; i < 5; i++) await nextTask()
  assert.equal(adapter.requests.length, 0)
  await host.dispose()
  await one.whenIdle()
  assert.equal(adapter.requests.length, 1)
  release()
})
