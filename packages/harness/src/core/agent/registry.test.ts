import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { SessionId } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { createHarness } from '../../testing/harness.ts'
import { AgentRegistry } from './index.ts'
import type { Agent, AgentFactory, AgentHandle } from './index.ts'

/** A registry alone; agents are borrowed from a loop that lives in another tree. */
async function setup() {
  const other = await createHarness()
  const ctx = new Context()
  const registry = ctx.plugin(AgentRegistry)
  await registry
  const heard: string[] = []
  ctx.on('agent/created', ({ agent }) => void heard.push(`created ${agent.id}`))
  ctx.on('agent/disposed', ({ agent }) => void heard.push(`disposed ${agent.id}`))
  return { ctx, registry, heard, agent: (id: string): Agent => other.agent(id) }
}

test('an agent is found from entering to leaving, and announced once', async () => {
  const { ctx, heard, agent } = await setup()
  const a = agent('a')
  const leave = ctx.agents.enter(a)
  assert.equal(ctx.agents.get(a.id), a)
  assert.deepEqual(heard, [])
  ctx.agents.announce(a)
  assert.throws(() => ctx.agents.announce(a), TypeError)
  leave()
  leave()
  assert.equal(ctx.agents.get(a.id), undefined)
  assert.deepEqual(heard, ['created a', 'disposed a'])
})

test('an entry that was never announced leaves in silence', async () => {
  const { ctx, heard, agent } = await setup()
  ctx.agents.enter(agent('a'))()
  assert.deepEqual(heard, [])
})

test('an id is taken by one agent, and a late leave takes nothing from its successor', async () => {
  const { ctx, agent } = await setup()
  const a = agent('a')
  const leave = ctx.agents.enter(a)
  assert.throws(() => ctx.agents.enter(a), { code: 'AGENT_EXISTS' })
  leave()
  ctx.agents.enter(a)
  leave()
  assert.equal(ctx.agents.get(a.id), a)
})

test('an agent whose session has another id is refused', async () => {
  const { ctx, agent } = await setup()
  const a = agent('a')
  const wrong = { ...a, id: SessionId('b'), session: a.session } as unknown as Agent
  assert.throws(() => ctx.agents.enter(wrong), TypeError)
})

test('a listener that throws refuses the agent, and both edges are heard once', async () => {
  const { ctx, heard, agent } = await setup()
  ctx.on('agent/created', () => {
    throw new Error('no')
  })
  assert.throws(() => ctx.agents.register(agent('a')), { message: 'no' })
  assert.deepEqual(heard, ['created a', 'disposed a'])
  assert.equal(ctx.agents.get(SessionId('a')), undefined)
})

test('leaving during the announcement waits for its end', async () => {
  const { ctx, heard, agent } = await setup()
  const a = agent('a')
  const leave = ctx.agents.enter(a)
  ctx.on('agent/created', () => leave())
  ctx.on('agent/created', () => void heard.push('second listener'))
  ctx.agents.announce(a)
  assert.deepEqual(heard, ['created a', 'second listener', 'disposed a'])
})

test('a registered agent goes with the plugin that registered it', async () => {
  const { ctx, heard, agent } = await setup()
  const owner = ctx.plugin(own => void own.agents.register(agent('a')))
  await owner
  await owner.dispose()
  assert.deepEqual(heard, ['created a', 'disposed a'])
})

test('roots are the agents no other agent made', async () => {
  const { ctx, agent } = await setup()
  const [parent, child] = [agent('parent'), agent('child')]
  ctx.agents.enter(parent)
  ctx.agents.enter(child, parent)
  assert.deepEqual(ctx.agents.roots(), [parent])
  assert.deepEqual(ctx.agents.list(), [parent, child])
  assert.equal(ctx.agents.isOwnedBy(child.id, parent), true)
  assert.equal(ctx.agents.isOwnedBy(parent.id, child), false)
})

test('agents are made by the one factory there is, for the one who asks', async () => {
  const { ctx } = await setup()
  const options = { sessionId: SessionId('a') }
  await assert.rejects(ctx.agents.create(options), {
    code: 'NO_FACTORY',
    message: 'no agent factory registered',
  })
  const asked: Context[] = []
  const handle = {} as AgentHandle
  const factory: AgentFactory = {
    createAgent: owner => (asked.push(owner), Promise.resolve(handle)),
    resume: owner => (asked.push(owner), Promise.resolve(handle)),
  }
  const maker = ctx.plugin(own => void own.agents.setFactory(factory))
  await maker
  assert.throws(() => ctx.agents.setFactory(factory), { code: 'DUPLICATE_FACTORY' })
  const caller = ctx.extend()
  assert.equal(await caller.agents.create(options), handle)
  assert.equal(await caller.agents.resume({ resumeSessionId: SessionId('a') }), handle)
  assert.deepEqual(asked, [caller, caller])
  await maker.dispose()
  await assert.rejects(ctx.agents.create(options), { code: 'NO_FACTORY' })
})

test('the initiator is known inside, across awaits, and back to what it was outside', async () => {
  const { ctx, agent } = await setup()
  const [a, b] = [agent('a'), agent('b')]
  const { agents } = ctx
  assert.equal(agents.currentInitiator(), undefined)
  assert.throws(() => agents.requireInitiator(), { code: 'NO_INITIATOR' })
  const promise = Promise.resolve('same')
  assert.equal(
    agents.withInitiator(a, () => promise),
    promise,
  )
  await agents.withInitiator(a, async () => {
    await nextTask()
    assert.equal(agents.requireInitiator(), a)
    agents.withInitiator(b, () => assert.equal(agents.currentInitiator(), b))
    agents.withoutInitiator(() => assert.equal(agents.currentInitiator(), undefined))
    assert.equal(agents.currentInitiator(), a)
  })
  assert.equal(agents.currentInitiator(), undefined)
})

test('an unloading registry starts nothing, waits for what runs, and then knows nobody', async () => {
  const { ctx, registry, agent } = await setup()
  const { agents } = ctx
  const a = agent('a')
  const gate = Promise.withResolvers<void>()
  const seen: unknown[] = []
  const work = agents.withInitiator(a, async () => {
    await gate.promise
    seen.push(agents.currentInitiator())
  })
  const end = registry.dispose().then(() => seen.push('ended'))
  assert.throws(() => agents.withInitiator(a, () => 1), { code: 'REGISTRY_ENDED' })
  await nextTask()
  assert.deepEqual(seen, [])
  gate.resolve()
  await Promise.all([work, end])
  assert.deepEqual(seen, [a, 'ended'])
  assert.throws(() => agents.currentInitiator(), { code: 'REGISTRY_ENDED' })
})

test('work that unloads the registry does not wait for itself', async () => {
  const { ctx, registry, agent } = await setup()
  await ctx.agents.withInitiator(agent('a'), async () => {
    await nextTask()
    await ctx.agents.withInitiator(agent('b'), () => registry.dispose())
  })
  assert.equal(registry.state, 'disposed')
})

test('unfinished work is inside of its agents at any depth, finished work is not', async () => {
  const { ctx, agent } = await setup()
  const { agents } = ctx
  const [a, b] = [agent('a'), agent('b')]
  const late = Promise.withResolvers<void>()
  let detached: Promise<boolean> | undefined
  await agents.withInitiator(a, async () => {
    agents.withInitiator(b, () => {
      assert.deepEqual([agents.isInside(a), agents.isInside(b)], [true, true])
    })
    assert.deepEqual([agents.isInside(a), agents.isInside(b)], [true, false])
    detached = late.promise.then(() => agents.isInside(a))
    await nextTask()
  })
  late.resolve()
  assert.equal(await detached, false)
  assert.equal(agents.isInside(a), false)
})

test('a context knows the agent whose scope it is in', async () => {
  const { ctx, agent } = await createHarness()
  const a = agent('a')
  assert.equal(ctx.agent, undefined)
  assert.equal(a.ctx.agent, a)
  assert.equal(a.ctx.extend().agent, a)
})
