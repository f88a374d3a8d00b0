import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { SessionId } from '@dsh/protocol'
import type { UserMessage } from '@dsh/protocol'
import { text } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import type { Agent, AgentSetup } from '../agent/index.ts'
import { lintLog } from '../invariants/index.ts'

const mock = { provider: 'mock', model: 'mock' }

async function setup(...script: ScriptEntry[]) {
  const harness = await createHarness(script)
  const { ctx } = harness
  const heard: string[] = []
  ctx.on('agent/status', ({ status }) => void heard.push(status))
  ctx.on('agent/error', ({ error }) => void heard.push(`error ${(error as Error).message}`))
  ctx.on('agent/parked', ({ pending }) => void heard.push(`parked ${pending.map(wordsOf).join()}`))
  ctx.on('agent/cancel-requested', ({ cause }) => void heard.push(`cancel ${cause.kind}`))
  const make = async (compose?: AgentSetup) => {
    const options = { sessionId: SessionId('a'), agentOptions: mock }
    return ctx.agents.create(compose === undefined ? options : { ...options, setup: compose })
  }
  return { ...harness, heard, make }
}

function wordsOf({ content }: UserMessage): string {
  const [block] = content
  return block?.type === 'text' ? block.text : ''
}

function entered(agent: Agent): string[] {
  return agent.session.events.flatMap(event => (event.type === 'user/message' ? [wordsOf(event.data)] : []))
}

test('a cancel is announced where something runs, and where something only waits', async () => {
  const { agent: start, heard } = await setup('hang')
  const agent = start()
  agent.inject(say('note'))
  agent.cancel({ kind: 'user' })
  assert.deepEqual(heard, ['cancel user'])
  agent.followup(say('a'))
  await nextTask()
  assert.equal(agent.inbox.hasPending, false)
  agent.cancel({ kind: 'parent' })
  await agent.whenIdle()
  assert.deepEqual(heard, ['cancel user', 'running', 'cancel parent', 'idle'])
})

test('a cancel whose clearing the log refuses ends the turn all the same', async () => {
  const { ctx, agent: start, heard } = await setup('hang')
  const agent = start()
  agent.followup(say('a'))
  await nextTask()
  agent.inject(say('note'))
  const stop = ctx.on('internal/dispatch', (_mode, name) => {
    if (name === 'session/event') throw new Error('no')
  })
  agent.cancel({ kind: 'user' })
  stop()
  await agent.whenIdle()
  assert.match(outline(agent.session.events), /te:aborted\{user\}$/)
  assert.deepEqual(heard, ['running', 'cancel user', 'error no', 'parked note', 'idle'])
})

test('input given before the agent is there waits for maintenance that its start begins', async () => {
  const { ctx, make } = await setup(text('ok'))
  const gate = Promise.withResolvers<void>()
  ctx.on('agent/session-start', ({ agent }) => void agent.runMaintenance(() => gate.promise))
  const { agent } = await make(own => own.agent?.followup(say('early')))
  await nextTask()
  assert.deepEqual(entered(agent), [])
  gate.resolve()
  await agent.whenIdle()
  assert.deepEqual(entered(agent), ['early'])
})

test('input that was taken back before the agent is there wakes nothing, and context does not either', async () => {
  const { make, heard } = await setup()
  const { agent } = await make(own => {
    own.agent?.followup(say('early'))
    own.agent?.cancel({ kind: 'user' })
    own.agent?.inject(say('note'))
  })
  await agent.whenIdle()
  assert.deepEqual(heard, ['cancel user'])
  assert.deepEqual(agent.inbox.nextStep.map(wordsOf), ['note'])
})

test('early input that the first turn leaves behind is parked like any other', async () => {
  const { ctx, make, heard } = await setup()
  ctx.once('agent/request', async () => {
    throw new Error('no')
  })
  ctx.on('agent/session-start', ({ agent }) => agent.followup(say('b')))
  const { agent } = await make(own => own.agent?.followup(say('a')))
  await agent.whenIdle()
  assert.deepEqual(heard, ['running', 'error no', 'parked b', 'idle'])
})

test('idle is waited for through maintenance', async () => {
  const { agent: start } = await setup()
  const agent = start()
  const gate = Promise.withResolvers<void>()
  const done: string[] = []
  const job = agent.runMaintenance(() => gate.promise).then(() => done.push('job'))
  const idle = agent.whenIdle().then(() => done.push('idle'))
  await nextTask()
  assert.deepEqual(done, [])
  gate.resolve()
  await Promise.all([job, idle])
  assert.deepEqual(new Set(done), new Set(['idle', 'job']))
})

test('an agent that ends takes input into its log, and begins nothing', async () => {
  const { ctx, make, heard } = await setup()
  const { agent, dispose } = await make().then(handle => ({
    agent: handle.agent,
    dispose: () => handle.dispose(),
  }))
  const codes: unknown[] = []
  ctx.on('agent/disposed', () => {
    agent.followup(say('late'))
    try {
      void agent.runMaintenance(async () => {})
    } catch (error) {
      codes.push((error as { code?: unknown }).code)
    }
  })
  await dispose()
  assert.deepEqual(codes, ['AGENT_DISPOSED'])
  assert.deepEqual(heard, [])
  assert.equal(outline(agent.session.events), 'sp')
})

test('input at the end of the registry stays in the log, and is told of', async () => {
  const { ctx, agent: start, heard } = await setup()
  const agent = start()
  const registry = [...ctx.fiber.children].find(({ name }) => name === 'AgentRegistry')
  const stop = ctx.on('internal/fiber', fiber => {
    if (fiber !== registry || fiber.state !== 'unloading') return
    stop()
    agent.followup(say('late'))
    heard.push(agent.status)
  })
  await registry?.dispose()
  assert.deepEqual(heard, ['error no work can be started: the agent registry is ending', 'idle'])
  assert.equal(outline(agent.session.events), 'sp')
})

test('each turn has a signal of its own', async () => {
  const { ctx, agent: start } = await setup(text('1'), text('2'))
  const agent = start()
  const signals = new Set<AbortSignal>()
  ctx.on('agent/pre-step', async ({ signal }, next) => (signals.add(signal), next()))
  agent.followup(say('a'))
  agent.followup(say('b'))
  await agent.whenIdle()
  assert.equal(signals.size, 2)
})

test('steering that was taken back while the turn is put away opens none', async () => {
  const { ctx, agent: start, heard } = await setup(text('1'))
  const agent = start()
  ctx.once('session/flush', () => {
    const more = say('more')
    agent.steer(more)
    agent.inbox.remove(more.id)
  })
  agent.followup(say('a'))
  await agent.whenIdle()
  assert.deepEqual(heard, ['running', 'idle'])
  assert.match(outline(agent.session.events), /te:completed sp sp$/)
  assert.deepEqual(lintLog(agent.session.events), [])
})

test('a listener that answers parked context with input gets its turn', async () => {
  const { ctx, agent: start } = await setup(text('1'), text('2'))
  const agent = start()
  ctx.once('session/flush', () => agent.inject(say('note')))
  ctx.once('agent/parked', () => agent.steer(say('go on')))
  agent.followup(say('a'))
  await agent.whenIdle()
  assert.deepEqual(entered(agent), ['a', 'note', 'go on'])
})
