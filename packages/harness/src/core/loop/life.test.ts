import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { SessionId } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import { text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import type { AgentHandle, AgentSetup, CreateAgentOptions } from '../agent/index.ts'
import { lintLog } from '../invariants/index.ts'
import { Session } from '../session/index.ts'
import { defineTool } from '../tools/index.ts'

const id = SessionId('a')
const mock = { provider: 'mock', model: 'mock' }

async function setup(...script: ScriptEntry[]) {
  const { ctx, adapter } = await createHarness(script)
  const heard: string[] = []
  ctx.on('session/created', session => void heard.push(`session/created ${session.id}`))
  ctx.on('agent/created', ({ agent }) => void heard.push(`agent/created ${agent.id}`))
  ctx.on('agent/session-start', ({ agent, source }) => void heard.push(`start ${agent.id} ${source}`))
  ctx.on('agent/disposed', ({ agent }) => void heard.push(`agent/disposed ${agent.id}`))
  ctx.on('session/flush', session => void heard.push(`flush ${session.id}`))
  ctx.on('session/disposed', session => void heard.push(`session/disposed ${session.id}`))
  const create = (options: CreateAgentOptions = {}, owner: Context = ctx): Promise<AgentHandle> =>
    owner.agents.create({ sessionId: id, agentOptions: mock, ...options })
  const isGone = (): boolean => ctx.agents.get(id) === undefined && ctx.sessions.get(id) === undefined
  return { ctx, adapter, heard, create, isGone }
}

function tool(name: string, result: string) {
  return defineTool({ name, description: 'Says who it is.', parameters: {}, execute: () => result })
}

test('what set-up registers is there before anybody hears of the agent', async () => {
  const { ctx, heard, create, adapter } = await setup(text('ok'))
  const seen: unknown[] = []
  const look = (): void => void seen.push([ctx.tools.get('own', ctx.agents.get(id))?.name, heard.at(-1)])
  ctx.on('session/created', look)
  ctx.on('agent/created', look)
  ctx.on('agent/session-start', look)
  const { agent } = await create({
    setup: async agentCtx => {
      await nextTask()
      assert.equal(agentCtx.agent?.id, id)
      assert.equal(agentCtx.agent.session.id, id)
      assert.equal(ctx.agents.get(id), undefined)
      assert.equal(ctx.sessions.get(id), undefined)
      agentCtx.tools.register(tool('own', 'a'))
      agentCtx.systemPrompt.section({ name: 'own', order: 1, text: 'Only here.' })
      return { commit: () => void heard.push('commit') }
    },
  })
  assert.deepEqual(heard, ['commit', 'session/created a', 'agent/created a', 'start a startup'])
  assert.deepEqual(seen, [
    ['own', 'session/created a'],
    ['own', 'agent/created a'],
    ['own', 'start a startup'],
  ])
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.deepEqual(
    adapter.requests[0]?.tools?.map(({ name }) => name),
    ['own'],
  )
  assert.match(adapter.requests[0]?.system ?? '', /Only here\.$/)
})

test('an agent without set-up is there at once, and goes with the plugin that made it', async () => {
  const { ctx, heard, isGone } = await setup(text('ok'))
  const owner = ctx.plugin(own => void own.agentLoop.create(id, mock, { cwd: '/work' }))
  assert.deepEqual(heard, ['session/created a', 'agent/created a', 'start a startup'])
  const agent = ctx.agents.get(id)
  assert.equal(agent?.session.header.cwd, '/work')
  assert.throws(() => ctx.agentLoop.create(id, mock), { code: 'SESSION_ALREADY_EXISTS' })
  assert.equal(ctx.agents.get(id), agent)
  await owner
  await owner.dispose()
  assert.ok(isGone())
})

test('options that cannot be used are refused before anything exists', async () => {
  const { ctx, heard, create, isGone } = await setup()
  for (const maxTokens of [0, -1, 1.5, Number.NaN])
    await assert.rejects(create({ agentOptions: { maxTokens } }), TypeError)
  assert.throws(() => ctx.agentLoop.create(id, { maxTokens: 0 }), TypeError)
  const open = Session.create(id)
  open.append('turn/start', { turn: 1 })
  await assert.rejects(create({ seed: open.events }), { code: 'OPEN_TURN' })
  assert.ok(isGone())
  assert.deepEqual(heard, [])
})

test('a set-up that fails leaves no trace, and its error is the one that is thrown', async () => {
  const { ctx, heard, create, isGone } = await setup()
  const error = new Error('no')
  const fail = (): never => {
    throw error
  }
  const owner = ctx.inspect()
  await assert.rejects(create({ setup: fail }), error)
  await assert.rejects(create({ setup: () => Promise.reject(error) }), error)
  await assert.rejects(create({ setup: () => ({ commit: fail }) }), error)
  assert.ok(isGone())
  assert.deepEqual(heard, [])
  assert.deepEqual(ctx.inspect(), owner)
  await create()
})

test('an abort ends the set-up, whoever gives up', async () => {
  const { ctx, heard, create, isGone } = await setup()
  const started: Context[] = []
  const forever: AgentSetup = agentCtx => {
    started.push(agentCtx)
    return new Promise(() => {})
  }
  const reason = new Error('not any more')
  await assert.rejects(create({ setup: forever, signal: AbortSignal.abort(reason) }), reason)
  assert.equal(started.length, 0)
  const controller = new AbortController()
  const pending = create({ setup: forever, signal: controller.signal })
  controller.abort('just because')
  await assert.rejects(pending, { message: 'agent "a" creation aborted', cause: 'just because' })
  const owner = ctx.plugin(() => {})
  await owner
  const owned = create({ setup: forever }, owner.ctx)
  await Promise.all([assert.rejects(owned, /which owns agent "a", is unloading/), owner.dispose()])
  assert.ok(isGone())
  assert.deepEqual(heard, [])
  const { signal } = new AbortController()
  await assert.rejects(create({ setup: () => Promise.reject(reason), signal }), reason)
  assert.deepEqual(getEventListeners(signal, 'abort'), [])
  const before = ctx.inspect()
  await assert.rejects(create({}, owner.ctx), { code: 'INACTIVE_EFFECT' })
  assert.deepEqual(ctx.inspect(), before)
  for (const agentCtx of started)
    assert.throws(() => agentCtx.tools.register(tool('late', '')), { code: 'INACTIVE_EFFECT' })
  await create()
})

test('once the agent is there the signal of its making ends nothing', async () => {
  const { ctx, create } = await setup(text('ok'))
  const controller = new AbortController()
  const { agent } = await create({ signal: controller.signal })
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
  controller.abort()
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.match(outline(agent.session.events), /te:completed$/)
  assert.equal(ctx.agents.get(id), agent)
})

test('a listener that refuses the session or the agent undoes both, and every edge has its pair', async () => {
  const { ctx, heard, create, isGone } = await setup()
  const error = new Error('no')
  for (const edge of ['session/created', 'agent/created'] as const) {
    heard.length = 0
    const stop = ctx.on(edge, () => {
      throw error
    })
    await assert.rejects(create(), error)
    assert.ok(isGone())
    assert.deepEqual(
      heard,
      edge === 'session/created'
        ? ['session/created a', 'session/disposed a']
        : ['session/created a', 'agent/created a', 'agent/disposed a', 'session/disposed a'],
    )
    assert.throws(() => ctx.agentLoop.create(id, mock), error)
    assert.ok(isGone())
    stop()
  }
  await create()
})

test('a listener that ends the owner in the middle of the publication ends the agent', async () => {
  const { ctx, create, isGone, heard } = await setup()
  for (const edge of ['session/created', 'agent/created', 'agent/session-start'] as const) {
    heard.length = 0
    const owner = ctx.plugin(() => {})
    await owner
    ctx.once(edge, () => void owner.dispose())
    await assert.rejects(create({}, owner.ctx), /is unloading/)
    await owner.dispose()
    assert.ok(isGone())
    const count = (word: string): number => heard.filter(each => each.startsWith(word)).length
    assert.equal(count('session/created'), count('session/disposed'))
    assert.equal(count('agent/created'), count('agent/disposed'))
    assert.equal(count('start'), edge === 'agent/session-start' ? 1 : 0)
  }
})

test('of two makings of one id exactly one succeeds', async () => {
  const { create, ctx } = await setup()
  const both = await Promise.allSettled([
    create({ setup: () => nextTask() }),
    create({ setup: () => nextTask() }),
  ])
  assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const reasons = both.flatMap(result =>
    result.status === 'rejected' ? [result.reason as { code?: string }] : [],
  )
  assert.deepEqual(
    reasons.map(({ code }) => code),
    ['SESSION_ALREADY_EXISTS'],
  )
  assert.equal(ctx.agents.list().length, 1)
  assert.equal(ctx.sessions.list().length, 1)
})

test('input given during set-up runs when the agent has started, input of a start listener at once', async () => {
  const { ctx, create, heard } = await setup(text('1'), text('2'))
  ctx.on('session/event', (_session, { type }) => void heard.push(type))
  ctx.once('agent/session-start', ({ agent }) => {
    assert.equal(agent.status, 'idle')
    assert.equal(agent.session.length, 1)
  })
  const { agent } = await create({ setup: agentCtx => agentCtx.agent?.followup(say('early')) })
  await agent.whenIdle()
  assert.deepEqual(heard.slice(2, 5), ['start a startup', 'turn/start', 'agent/inbox/spliced'])
  ctx.once('agent/session-start', ({ agent: other }) => {
    other.steer(say('at the start'))
    assert.equal(other.status, 'running')
  })
  const other = ctx.agentLoop.create(SessionId('b'), mock)
  await other.whenIdle()
  assert.match(outline(other.session.events), /te:completed$/)
})

test('the end comes in order: turn, agent, last flush, session, and then what the scope held', async () => {
  const { ctx, create, heard, isGone } = await setup('hang')
  const handle = await create({
    setup: agentCtx => {
      agentCtx.effect(() => () => void heard.push('scope undone'))
      agentCtx.on('agent/disposed', ({ agent }) => {
        heard.push('scoped agent/disposed')
        agent.session.append('todo/write', { todos: [] })
      })
      agentCtx.on('session/disposed', () => void heard.push('scoped session/disposed'))
    },
  })
  const { agent } = handle
  agent.followup(say('go'))
  agent.followup(say('queued'))
  await nextTask()
  heard.length = 0
  ctx.on('agent/status', ({ status }) => void heard.push(status))
  const [first, second] = [handle.dispose(), handle.dispose()]
  await Promise.all([first, second])
  assert.deepEqual(heard, [
    'flush a',
    'idle',
    'agent/disposed a',
    'scoped agent/disposed',
    'flush a',
    'session/disposed a',
    'scoped session/disposed',
    'scope undone',
  ])
  assert.ok(isGone())
  assert.match(outline(agent.session.events), / se te:aborted\{disposed\} todo\/write$/)
  assert.deepEqual(agent.inbox.nextTurn.length, 1)
  assert.throws(() => agent.ctx.tools.register(tool('late', '')), { code: 'INACTIVE_EFFECT' })
  assert.throws(() => agent.runMaintenance(async () => {}), { code: 'AGENT_DISPOSED' })
  agent.cancel({ kind: 'user' })
  assert.equal(agent.inbox.nextTurn.length, 1)
  await create()
})

test('a disposal waits for a tool that ignores it, and wakes nothing meanwhile', async () => {
  const { ctx, create, isGone } = await setup(toolCall('slow', {}), text('never'))
  const gate = Promise.withResolvers<string>()
  ctx.tools.register(
    defineTool({ name: 'slow', description: 'Slow.', parameters: {}, execute: () => gate.promise }),
  )
  const handle = await create()
  const { agent } = handle
  agent.followup(say('go'))
  for (let i = 0; i < 5; i++) await nextTask()
  let isDone = false
  const end = handle.dispose().then(() => (isDone = true))
  agent.followup(say('late'))
  await nextTask()
  assert.equal(isDone, false)
  gate.resolve('ok')
  await end
  assert.ok(isGone())
  assert.equal(agent.inbox.nextTurn.length, 1)
  assert.match(outline(agent.session.events), / tc sp tr se te:aborted\{disposed\}$/)
})

test('an agent may end itself without waiting for itself', async () => {
  const { ctx, create, isGone } = await setup(toolCall('leave', {}), toolCall('leave', {}))
  let leave: () => Promise<void> = async () => {}
  ctx.tools.register(
    defineTool({
      name: 'leave',
      description: 'Ends it all.',
      parameters: {},
      execute: () => leave().then(() => 'gone'),
    }),
  )
  let handle = await create()
  leave = () => handle.dispose()
  handle.agent.followup(say('go'))
  await handle.agent.whenIdle()
  await handle.dispose()
  assert.ok(isGone())
  const owner = ctx.plugin(() => {})
  await owner
  handle = await create({}, owner.ctx)
  leave = () => owner.dispose()
  handle.agent.followup(say('go'))
  await handle.agent.whenIdle()
  await handle.dispose()
  assert.ok(isGone())
  assert.deepEqual(lintLog(handle.agent.session.events), [])
})

test('a last flush that fails is told, after everything else was done', async () => {
  const { ctx, create, isGone } = await setup()
  const handle = await create()
  ctx.once('session/flush', () => {
    throw new Error('disk full')
  })
  await assert.rejects(handle.dispose(), /disk full|listener/)
  assert.ok(isGone())
  assert.throws(() => handle.agent.ctx.effect(() => () => {}), { code: 'INACTIVE_EFFECT' })
})

test('unloading the loop ends its agents, and a new one can go on', async () => {
  const { ctx, isGone } = await setup('hang', text('ok'))
  const { AgentLoop } = await import('./index.ts')
  const handle = await ctx.agents.create({ sessionId: id, agentOptions: mock })
  handle.agent.followup(say('go'))
  await nextTask()
  const loop = ctx.agentLoop.ctx.fiber
  assert.equal(loop, ctx.fiber)
  const fiber = [...ctx.fiber.children].find(each => each.name === 'AgentLoop')
  await fiber?.dispose()
  assert.ok(isGone())
  assert.match(outline(handle.agent.session.events), /te:aborted\{disposed\}$/)
  await assert.rejects(ctx.agents.create({ sessionId: id }), { code: 'NO_FACTORY' })
  await ctx.plugin(AgentLoop, {})
  const next = await ctx.agents.create({
    sessionId: id,
    agentOptions: mock,
    seed: handle.agent.session.events,
  })
  next.agent.followup(say('again'))
  await next.agent.whenIdle()
  assert.match(outline(next.agent.session.events), /te:completed$/)
})

test('an agent made through another one is its child, and ends with it', async () => {
  const { ctx, create } = await setup()
  const parent = await create()
  const child = await parent.agent.ctx.agents.create({ sessionId: SessionId('child'), agentOptions: mock })
  assert.equal(ctx.agents.isOwnedBy(child.agent.id, parent.agent), true)
  assert.deepEqual(ctx.agents.roots(), [parent.agent])
  await parent.dispose()
  assert.deepEqual(ctx.agents.list(), [])
  assert.deepEqual(ctx.sessions.list(), [])
})

test('listeners and tools of one agent are not those of another', async () => {
  const { ctx, adapter } = await setup()
  const seen: string[] = []
  const setupOf =
    (name: string): AgentSetup =>
    agentCtx => {
      agentCtx.tools.register(tool('who', name))
      const note = (what: string, whose: string | undefined): void =>
        void seen.push(`${name}: ${what} of ${whose}`)
      agentCtx.on('agent/created', ({ agent }) => note('created', agent.id))
      agentCtx.on('agent/status', ({ agent }) => note('status', agent.id))
      agentCtx.on('agent/pre-step', ({ agent }, next) => (note('pre-step', agent.id), next()))
      agentCtx.on('session/created', session => note('session/created', session.id))
      agentCtx.on('session/event', session => note('event', session.id))
      agentCtx.on('session/flush', session => note('flush', session.id))
      agentCtx.on('llm/stream', ({ sessionId }, next) => (note('request', sessionId), next()))
      agentCtx.on('tools/result', ({ agent }) => note('result', agent?.id))
      agentCtx.on(
        'system-prompt/assemble',
        (_assembly, context, next) => (note('assemble', context.agent?.id), next()),
      )
      agentCtx.on('agent/disposed', ({ agent }) => note('disposed', agent.id))
    }
  const make = (name: string): Promise<AgentHandle> =>
    ctx.agents.create({ sessionId: SessionId(name), agentOptions: mock, setup: setupOf(name) })
  const [a, b] = [await make('a'), await make('b')]
  ctx.tools.register(tool('who', 'nobody'))
  adapter.push(toolCall('who', {}), text('ok'), toolCall('who', {}), text('ok'))
  const answerOf = async ({ agent }: AgentHandle): Promise<unknown> => {
    agent.followup(say('who?'))
    await agent.whenIdle()
    const result = agent.session.events.findLast(event => event.type === 'tool/result')
    return result?.data.message.content[0].content
  }
  assert.deepEqual(await answerOf(a), [{ type: 'text', text: 'a' }])
  assert.deepEqual(await answerOf(b), [{ type: 'text', text: 'b' }])
  await a.dispose()
  adapter.push(toolCall('who', {}), text('ok'))
  assert.deepEqual(await answerOf(b), [{ type: 'text', text: 'b' }])
  await b.dispose()
  assert.ok(seen.length > 40)
  for (const line of seen) assert.equal(line.at(0), line.at(-1), line)
  for (const what of [
    'created',
    'status',
    'pre-step',
    'session/created',
    'event',
    'flush',
    'request',
    'result',
    'assemble',
    'disposed',
  ])
    assert.ok(seen.includes(`a: ${what} of a`), what)
})

test('nothing is left of an agent that was disposed', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { ctx, adapter } = await setup()
  const timersBefore = process.getActiveResourcesInfo().length
  const before = JSON.stringify(ctx.inspect())
  const refs: WeakRef<object>[] = []
  const live = async (number: number): Promise<void> => {
    adapter.push(toolCall('own', {}), 'hang')
    const handle = await ctx.agents.create({
      sessionId: SessionId(`short-${number}`),
      agentOptions: mock,
      setup: agentCtx => {
        agentCtx.tools.register(tool('own', 'x'))
        agentCtx.on('session/event', () => {})
      },
    })
    refs.push(new WeakRef(handle.agent), new WeakRef(handle.agent.session))
    handle.agent.followup(say('go'))
    for (let i = 0; i < 8; i++) await nextTask()
    await handle.dispose()
  }
  for (let number = 0; number < 20; number++) await live(number)
  adapter.requests.length = 0
  assert.equal(JSON.stringify(ctx.inspect()), before)
  assert.equal(process.getActiveResourcesInfo().length, timersBefore)
  for (let i = 0; i < 5; i++) await nextTask()
  collect()
  assert.ok(refs.filter(ref => ref.deref() !== undefined).length <= 2, 'agents are still held')
})
