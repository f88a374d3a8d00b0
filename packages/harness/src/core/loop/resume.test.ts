import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import { text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { lintLog } from '../invariants/index.ts'
import { createPreparation, interruptedTurnClosers } from '../session/index.ts'
import type { Session, SessionPersistence } from '../session/index.ts'
import { defineTool } from '../tools/index.ts'
import { AgentLoop } from './index.ts'
import type { ConfiguredAgent } from './index.ts'

const id = SessionId('a')
const mock = { provider: 'mock', model: 'mock' }

/** A store that is filled by hand and notes who holds what; `gate` holds its readers up. */
function memoryStore(ctx: Context) {
  const stored = new Map<SessionId, readonly SessionEvent[]>()
  const held = new Set<SessionId>()
  const signals: AbortSignal[] = []
  const gate = { open: Promise.resolve() }
  const store: Pick<SessionPersistence, 'prepare' | 'list'> = {
    async prepare(wanted, signal) {
      if (signal !== undefined) signals.push(signal)
      await gate.open
      const events = stored.get(wanted)
      if (events === undefined) throw new Error(`no session "${wanted}"`)
      const seed = JSON.parse(
        JSON.stringify([...events, ...interruptedTurnClosers(events)]),
      ) as SessionEvent[]
      const session = ctx.sessions.prepare(wanted, { seed, seedSource: 'persistence' })
      held.add(wanted)
      return createPreparation(session, () => held.delete(wanted), ['one turn was closed'])
    },
    list: async () => [...stored.keys()].map(known => ({ id: known, problem: '', path: '' })),
  }
  const plugin = (own: Context): void => void own.provide('sessionPersistence', store as SessionPersistence)
  return {
    stored,
    held,
    signals,
    gate,
    plugin,
    keep: (session: Session) => stored.set(session.id, session.events),
  }
}

async function setup(...script: ScriptEntry[]) {
  const { ctx, adapter } = await createHarness(script)
  ctx.tools.register(
    defineTool({ name: 'noop', description: 'Nothing.', parameters: {}, execute: () => 'ok' }),
  )
  const memory = memoryStore(ctx)
  const heard: string[] = []
  ctx.on('agent/session-start', ({ agent, source }) => void heard.push(`${agent.id} ${source}`))
  ctx.on('agent-loop/config-start-failed', ({ sessionId, error }) => {
    heard.push(`${sessionId} failed: ${(error as Error).message}`)
  })
  return { ctx, adapter, memory, heard }
}

/** The events of a session with one turn and something parked. */
async function liveOnce({ ctx, adapter, memory }: Awaited<ReturnType<typeof setup>>): Promise<void> {
  adapter.push(text('first'))
  const handle = await ctx.agents.create({ sessionId: id, agentOptions: mock })
  handle.agent.followup(say('one'))
  await handle.agent.whenIdle()
  handle.agent.inject(say('parked'))
  memory.keep(handle.agent.session)
  await handle.dispose()
}

test('without a store there is nothing to resume', async () => {
  const { ctx } = await setup()
  await assert.rejects(ctx.agents.resume({ resumeSessionId: id }), { code: 'NO_PERSISTENCE' })
})

test('a resumed agent has its history, its turn numbers and its parked input, and runs nothing by itself', async () => {
  const scene = await setup()
  const { ctx, adapter, memory, heard } = scene
  await ctx.plugin(memory.plugin)
  await liveOnce(scene)
  const handle = await ctx.agents.resume({ resumeSessionId: id, agentOptions: mock })
  const { agent } = handle
  assert.deepEqual(heard, ['a startup', 'a resume'])
  assert.deepEqual(handle.notices, ['one turn was closed'])
  await nextTask()
  assert.equal(agent.status, 'idle')
  assert.equal(agent.inbox.nextStep.length, 1)
  adapter.push(text('second'))
  agent.followup(say('two'))
  await agent.whenIdle()
  assert.match(
    outline(agent.session.events),
    / sp session\/end-seed sp ts sp sp ss um um rh ch am se te:completed$/,
  )
  assert.deepEqual(lintLog(agent.session.events), [])
  assert.ok(memory.held.has(id))
  const labels = ctx.inspect().effects.filter(label => label === 'agent a')
  await handle.dispose()
  await nextTask()
  assert.deepEqual([labels.length, ctx.inspect().effects.includes('agent a')], [1, false])
  assert.deepEqual(
    memory.signals.map(({ aborted }) => aborted),
    [false],
  )
})

test('wherever a run was cut off, the session goes on with a history that a strict provider takes', async () => {
  const scene = await setup(toolCall('noop', {}), text('done'))
  const { ctx, adapter, memory } = scene
  await ctx.plugin(memory.plugin)
  const { agent } = await ctx.agents.create({ sessionId: SessionId('whole'), agentOptions: mock })
  agent.followup(say('go'))
  await agent.whenIdle()
  const whole = agent.session.events
  for (let cut = 0; cut <= whole.length; cut++) {
    const name = SessionId(`cut-${cut}`)
    memory.stored.set(name, whole.slice(0, cut))
    const handle = await ctx.agents.resume({ resumeSessionId: name, agentOptions: mock })
    const { agent: again } = handle
    adapter.push(...again.inbox.nextTurn.map(() => text('at last')), text('and on'))
    again.followup(say('go on'))
    await again.whenIdle()
    assert.match(outline(again.session.events), /te:completed$/, `cut at ${cut}`)
    assert.deepEqual(lintLog(again.session.events), [], `cut at ${cut}`)
    const { messages = [] } = adapter.requests.at(-1) ?? {}
    for (const [index, { content }] of messages.entries()) {
      assert.ok(content.length > 0)
      const calls = content.flatMap(block => (block.type === 'tool-call' ? [block.id] : []))
      const answers = messages.slice(index + 1, index + 1 + calls.length)
      const answered = answers.flatMap(each =>
        each.content.flatMap(block => (block.type === 'tool-result' ? [block.toolCallId] : [])),
      )
      assert.deepEqual(answered, calls, `cut at ${cut}`)
    }
    const texts = JSON.stringify(messages)
    assert.equal(
      texts.split('"go"').length - 1 + again.inbox.nextTurn.length,
      cut === 0 ? 0 : 1,
      `cut at ${cut}`,
    )
    await handle.dispose()
  }
})

test('a resume that is given up releases what comes too late', async () => {
  const scene = await setup()
  const { ctx, memory } = scene
  await ctx.plugin(memory.plugin)
  await liveOnce(scene)
  const gate = Promise.withResolvers<void>()
  memory.gate.open = gate.promise
  const controller = new AbortController()
  const reason = new Error('enough')
  const pending = ctx.agents.resume({ resumeSessionId: id, signal: controller.signal })
  controller.abort(reason)
  await assert.rejects(pending, reason)
  const owner = ctx.plugin(() => {})
  await owner
  const owned = owner.ctx.agents.resume({ resumeSessionId: id })
  await Promise.all([assert.rejects(owned, /is unloading/), owner.dispose()])
  gate.resolve()
  await nextTask()
  assert.equal(memory.held.size, 0)
  assert.equal(ctx.agents.get(id), undefined)
  await ctx.agents.resume({ resumeSessionId: id })
})

test('a resume that fails gives the session back', async () => {
  const scene = await setup()
  const { ctx, memory } = scene
  await ctx.plugin(memory.plugin)
  await liveOnce(scene)
  const error = new Error('no')
  await assert.rejects(ctx.agents.resume({ resumeSessionId: id, setup: () => Promise.reject(error) }), error)
  assert.equal(memory.held.size, 0)
  await assert.rejects(ctx.agents.resume({ resumeSessionId: id, agentOptions: { maxTokens: 0 } }), TypeError)
  assert.equal(memory.held.size, 0)
  await assert.rejects(ctx.agents.resume({ resumeSessionId: SessionId('b') }), /no session "b"/)
})

test('a fork has its own inbox and goes on with the next turn', async () => {
  const { ctx, adapter } = await setup(text('1'), 'hang', text('2'))
  const { agent } = await ctx.agents.create({ sessionId: id, agentOptions: mock })
  agent.followup(say('one'))
  await agent.whenIdle()
  const boundary = agent.session.length - 1
  agent.followup(say('two'))
  agent.followup(say('queued'))
  await nextTask()
  const fork = await ctx.agents.create({
    sessionId: SessionId('fork'),
    agentOptions: mock,
    seed: agent.session.events.slice(0, boundary + 1),
    meta: { parentSession: id, seedLength: boundary + 1 },
  })
  assert.equal(fork.agent.inbox.hasPending, false)
  fork.agent.followup(say('other two'))
  await fork.agent.whenIdle()
  assert.match(
    outline(fork.agent.session.events),
    /te:completed session\/end-seed sp ts sp ss um rh ch am se te:completed$/,
  )
  assert.deepEqual(lintLog(fork.agent.session.events), [])
  assert.equal(adapter.requests.at(-1)?.messages.length, 3)
  agent.cancel({ kind: 'user' })
  await agent.whenIdle()
})

async function reconfigure(ctx: Context, agents: readonly ConfiguredAgent[]): Promise<void> {
  const loop = [...ctx.fiber.children].find(each => each.name === 'AgentLoop')
  await loop?.dispose()
  await ctx.plugin(AgentLoop, { agents })
  for (let i = 0; i < 4; i++) await nextTask()
}

test('configured agents are there with the loop, under their own or a new id', async () => {
  const scene = await setup()
  const { ctx, memory, heard } = scene
  await ctx.plugin(memory.plugin)
  await liveOnce(scene)
  heard.length = 0
  await reconfigure(ctx, [
    { id: 'main', ...mock, cwd: '/work', maxTokens: 10 },
    { id: 'kept', sessionId: id, ...mock },
    { id: 'new', sessionId: 'n', ...mock },
  ])
  const [main, ...others] = ctx.agents
    .list()
    .sort((one, other) => Number(one.id === id) - Number(other.id === id) || other.id.length - one.id.length)
  assert.match(main?.id ?? '', /^main-session-[0-9a-f-]{36}$/)
  assert.equal(main?.session.header.cwd, '/work')
  assert.deepEqual(main.options, { ...mock, maxTokens: 10 })
  assert.deepEqual(
    others.map(agent => agent.id),
    ['n', 'a'],
  )
  assert.deepEqual(heard.slice().sort().slice(0, 1), ['a resume'])
})

test('a configured agent needs no store unless it must go on with something', async () => {
  const { ctx, heard } = await setup()
  await reconfigure(ctx, [
    { id: 'main', ...mock },
    { id: 'kept', sessionId: 'k', ...mock },
  ])
  assert.equal(ctx.agents.list().length, 2)
  assert.ok(heard.includes('k startup'))
})

test('a configured agent that is not there yet when its loop ends is no failure', async () => {
  const { ctx, memory, heard } = await setup()
  await ctx.plugin(memory.plugin)
  const gate = Promise.withResolvers<void>()
  memory.gate.open = gate.promise
  await reconfigure(ctx, [{ id: 'gone', resumeSessionId: 'nowhere' }])
  const loop = [...ctx.fiber.children].find(each => each.name === 'AgentLoop')
  const end = loop?.dispose()
  gate.resolve()
  await end
  for (let i = 0; i < 4; i++) await nextTask()
  const early = ctx.plugin(AgentLoop, { agents: [{ id: 'early', maxTokens: 1 }] })
  await early.dispose()
  for (let i = 0; i < 4; i++) await nextTask()
  assert.deepEqual(heard, [])
})

test('a configured agent that does not start is reported, and the others start', async () => {
  const { ctx, memory, heard } = await setup()
  await ctx.plugin(memory.plugin)
  await reconfigure(ctx, [
    { id: 'gone', resumeSessionId: 'nowhere' },
    { id: 'new', sessionId: 'n' },
  ])
  assert.deepEqual(heard.sort(), ['n startup', 'nowhere failed: no session "nowhere"'])
})

test('a session that is to be resumed waits for its store, and ends with it', async () => {
  const scene = await setup()
  const { ctx, memory, heard } = scene
  await liveOnce(scene)
  heard.length = 0
  await reconfigure(ctx, [{ id: 'main', resumeSessionId: id, ...mock }])
  assert.deepEqual(heard, [])
  for (let round = 0; round < 2; round++) {
    const store = ctx.plugin(memory.plugin)
    for (let i = 0; i < 4; i++) await nextTask()
    assert.deepEqual(heard.splice(0), ['a resume'])
    await store.dispose()
    assert.equal(ctx.agents.get(id), undefined)
  }
})

test('a session that is to be resumed waits for its earlier life to end', async () => {
  const scene = await setup()
  const { ctx, adapter, memory, heard } = scene
  await liveOnce(scene)
  await reconfigure(ctx, [{ id: 'main', resumeSessionId: id, ...mock }])
  const gate = Promise.withResolvers<string>()
  ctx.tools.register(
    defineTool({ name: 'slow', description: 'Slow.', parameters: {}, execute: () => gate.promise }),
  )
  adapter.push(toolCall('slow', {}))
  const earlier = await ctx.agents.create({ sessionId: id, agentOptions: mock })
  earlier.agent.followup(say('go'))
  for (let i = 0; i < 5; i++) await nextTask()
  heard.length = 0
  const end = earlier.dispose()
  await ctx.plugin(memory.plugin, undefined, { wait: true })
  for (let i = 0; i < 4; i++) await nextTask()
  assert.deepEqual(heard, [])
  gate.resolve('ok')
  await end
  for (let i = 0; i < 4; i++) await nextTask()
  assert.deepEqual(heard, ['a resume'])
})

test('a configuration that contradicts itself is refused with what is wrong', async () => {
  const { ctx } = await setup()
  const wrong: [ConfiguredAgent[], RegExp][] = [
    [
      [{ id: 'x', sessionId: 'a', resumeSessionId: 'b' }],
      /agents\.0: takes sessionId or resumeSessionId, not both/,
    ],
    [
      [
        { id: 'x', sessionId: 'a' },
        { id: 'y', resumeSessionId: 'a' },
      ],
      /agents: name one session twice/,
    ],
    [[{ id: 'x', maxTokens: 0 }], /agents\.0\.maxTokens/],
  ]
  for (const [agents, message] of wrong) {
    const loop = [...ctx.fiber.children].find(each => each.name === 'AgentLoop')
    await loop?.dispose()
    await assert.rejects(async () => ctx.plugin(AgentLoop, { agents }), { code: 'INVALID_CONFIG', message })
  }
  await assert.rejects(async () => ctx.plugin(AgentLoop, { maxParallelToolCalls: 0 }), {
    code: 'INVALID_CONFIG',
  })
})
