import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import type { Message, SessionEventType } from '@dsh/protocol'
import { text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { lintLog } from '../invariants/index.ts'
import { defineTool } from '../tools/index.ts'

async function setup(...script: ScriptEntry[]) {
  const harness = await createHarness(script)
  const { ctx, adapter } = harness
  ctx.tools.register(
    defineTool({ name: 'noop', description: 'Does nothing.', parameters: {}, execute: () => 'ok' }),
  )
  const agent = harness.agent()
  const heard: string[] = []
  ctx.on('agent/status', ({ status }) => void heard.push(status))
  ctx.on(
    'agent/error',
    ({ turn, step, error }) => void heard.push(`error ${turn}.${step} ${(error as Error).message}`),
  )
  ctx.on('agent/parked', ({ pending, returned }) => {
    heard.push(`parked [${pending.map(wordsOf).join()}] returned [${returned.map(wordsOf).join()}]`)
  })
  const log = (): string => outline(agent.session.events)
  const idle = async (): Promise<string> => {
    await agent.whenIdle()
    assert.deepEqual(lintLog(agent.session.events), [])
    return log()
  }
  const entered = (): string[] =>
    agent.session.events.flatMap(event => (event.type === 'user/message' ? [wordsOf(event.data)] : []))
  const once = (type: SessionEventType, act: () => void): void => {
    const stop = ctx.on('session/event', (_session, event) => {
      if (event.type !== type) return
      stop()
      act()
    })
  }
  return { ctx, adapter, agent, heard, log, idle, entered, once }
}

function wordsOf({ content }: Message): string {
  const [block] = content
  return block?.type === 'text' ? block.text : ''
}

test('context injected into an idle agent waits, and enters before the next prompt', async () => {
  const { agent, heard, log, idle, entered } = await setup(text('ok'))
  agent.inject(say('note'))
  assert.equal(log(), 'sp')
  assert.deepEqual(heard, [])
  agent.followup(say('go'))
  assert.equal(await idle(), 'sp sp ts sp sp ss um um rh rc ch am se te:completed')
  assert.deepEqual(entered(), ['note', 'go'])
})

test('input that wakes while a cancelled turn is ending runs in a turn of its own', async () => {
  const { agent, heard, idle, entered } = await setup('hang', text('ok'))
  agent.followup(say('a'))
  await nextTask()
  agent.cancel({ kind: 'user' })
  agent.steer(say('b'))
  assert.equal(
    await idle(),
    'sp ts sp ss um rh rc ch sp am(interrupted) se te:aborted{user} ts sp ss um ch am se te:completed',
  )
  assert.deepEqual(entered(), ['a', 'b'])
  assert.deepEqual(heard, ['running', 'idle', 'running', 'idle'])
  const late = agent.session.events.filter(event => event.type === 'agent/inbox/spliced')
  assert.deepEqual(
    late.map(({ data }) => data.target),
    Array(4).fill('next-turn'),
  )
})

test('a second cancel takes back what would have run after the first, and context runs nothing', async () => {
  const { agent, heard, idle, entered } = await setup('hang')
  agent.followup(say('a'))
  await nextTask()
  agent.cancel({ kind: 'user' })
  agent.followup(say('b'))
  agent.cancel({ kind: 'user' })
  agent.inject(say('note'))
  await idle()
  assert.deepEqual(entered(), ['a'])
  assert.deepEqual(heard, ['running', 'parked [note] returned []', 'idle'])
})

test('input that arrives while a disposal ends the turn stays where it is', async () => {
  const { agent, heard, idle, entered } = await setup('hang')
  agent.followup(say('a'))
  await nextTask()
  agent.cancel({ kind: 'disposed' })
  agent.followup(say('b'))
  await idle()
  assert.deepEqual(entered(), ['a'])
  assert.deepEqual(heard, ['running', 'parked [b] returned []', 'idle'])
})

test('input that was taken back before the cancelled turn ended starts nothing', async () => {
  const { agent, heard, idle, entered } = await setup('hang')
  agent.followup(say('a'))
  await nextTask()
  agent.cancel({ kind: 'user' })
  const late = say('b')
  agent.followup(late)
  agent.inbox.remove(late.id)
  await idle()
  assert.deepEqual(entered(), ['a'])
  assert.deepEqual(heard, ['running', 'idle'])
})

test('a cancel that keeps the inbox parks what is queued, steering too, until the next wake', async () => {
  const { agent, heard, idle, entered } = await setup('hang', text('1'), text('2'))
  agent.followup(say('a'))
  await nextTask()
  agent.followup(say('b'))
  agent.steer(say('c'))
  agent.cancel({ kind: 'user' }, { keepInbox: true })
  assert.ok(!(await idle()).includes('te:completed'))
  assert.deepEqual(heard, ['running', 'parked [c,b] returned []', 'idle'])
  assert.ok(
    agent.session.events.every(
      event => event.type !== 'agent/inbox/spliced' || event.data.outcome === undefined,
    ),
  )
  agent.followup(say('d'))
  await idle()
  assert.deepEqual(entered(), ['a', 'c', 'b', 'd'])
})

test('the first cause of a cancel is the one that counts', async () => {
  const { agent, idle } = await setup('hang')
  agent.followup(say('a'))
  await nextTask()
  agent.cancel({ kind: 'hook', reason: 'too long' })
  agent.cancel({ kind: 'user' })
  await idle()
  const end = agent.session.events.at(-1)
  assert.deepEqual(end?.type === 'turn/end' && end.data.reason, {
    kind: 'aborted',
    reason: { kind: 'hook', reason: 'too long' },
  })
})

test('a cancel is announced before it does anything, and only where it does something', async () => {
  const { ctx, agent, idle } = await setup('hang')
  const seen: unknown[] = []
  ctx.on('agent/cancel-requested', payload => {
    assert.equal(payload.agent, agent)
    seen.push([payload.cause, agent.inbox.nextTurn.length, agent.status])
  })
  agent.cancel({ kind: 'user' })
  agent.followup(say('a'))
  await nextTask()
  agent.followup(say('b'))
  agent.cancel({ kind: 'parent' })
  agent.cancel({ kind: 'user' })
  await idle()
  agent.inject(say('c'))
  agent.cancel({ kind: 'disposed' })
  assert.deepEqual(seen, [[{ kind: 'parent' }, 1, 'running']])
})

test('input that arrives while a failed turn is put away runs right after', async () => {
  const { ctx, agent, heard, idle, entered } = await setup(text('ok'))
  ctx.once('agent/request', async () => {
    throw new Error('no')
  })
  const flushed = Promise.withResolvers<void>()
  ctx.once('session/flush', () => flushed.promise)
  agent.followup(say('a'))
  await nextTask()
  assert.equal(agent.session.events.at(-1)?.type, 'turn/end')
  agent.followup(say('b'))
  flushed.resolve()
  await idle()
  assert.deepEqual(entered(), ['a', 'b'])
  assert.deepEqual(heard, ['running', 'error 1.1 no', 'idle', 'running', 'idle'])
})

test('input that arrives while a rejected turn is put away runs right after', async () => {
  const { ctx, agent, heard, idle, entered } = await setup(text('ok'))
  ctx.once('agent/pre-step', async () => ({ kind: 'reject' }))
  ctx.once('session/flush', () => agent.steer(say('b')))
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(entered(), ['b'])
  assert.deepEqual(heard, ['running', 'parked [b] returned [a]', 'idle', 'running', 'idle'])
})

test('a listener that answers a refused turn with input is taken at its word', async () => {
  const { ctx, agent, idle, entered } = await setup(text('1'), text('2'))
  const stop = ctx.on('internal/dispatch', (_mode, name, args) => {
    if (name === 'session/event' && (args[1] as { type: string }).type === 'turn/start') throw new Error('no')
  })
  ctx.once('agent/error', () => {
    stop()
    agent.followup(say('b'))
  })
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(entered(), ['a', 'b'])
})

test('a listener that answers an error with input gets its turn', async () => {
  const { ctx, agent, idle, entered } = await setup(text('ok'))
  ctx.once('agent/request', async () => {
    throw new Error('no')
  })
  ctx.once('agent/error', () => agent.followup(say('again')))
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(entered(), ['a', 'again'])
})

test('a wake whose message is taken away at once still opens and closes a turn', async () => {
  const { agent, adapter, idle, once } = await setup()
  once('agent/inbox/spliced', () => agent.inbox.clear())
  agent.followup(say('a'))
  assert.equal(await idle(), 'sp sp ts te:completed')
  assert.equal(adapter.requests.length, 0)
})

test('steering that arrives while a finished turn is put away opens a turn, context alone does not', async () => {
  const { ctx, agent, heard, idle, entered } = await setup(text('1'), text('2'))
  ctx.once('session/flush', () => agent.inject(say('note')))
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(heard, ['running', 'parked [note] returned []', 'idle'])
  ctx.once('session/flush', () => agent.steer(say('c')))
  agent.followup(say('b'))
  await idle()
  assert.deepEqual(entered(), ['a', 'note', 'b', 'c'])
})

test('steering that was taken in earlier does not make later context open a turn', async () => {
  const { ctx, agent, heard, idle } = await setup(text('1'), text('2'))
  ctx.once('agent/turn-stopping', () => agent.steer(say('more')))
  ctx.once('session/flush', () => agent.inject(say('note')))
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(heard, ['running', 'parked [note] returned []', 'idle'])
})

test('listeners are asked whether the turn may stop only when it would', async () => {
  const { ctx, agent, idle, once } = await setup(text('1'), text('2'))
  let stops = 0
  ctx.on('agent/turn-stopping', () => void stops++)
  once('assistant/message', () => agent.steer(say('more')))
  agent.followup(say('a'))
  await idle()
  assert.equal(stops, 1)
})

test('what a listener left out of a batch is not given back', async () => {
  const { ctx, agent, heard, idle, entered } = await setup()
  ctx.on('agent/pre-step', async ({ messages }) => ({ kind: 'enter', messages: messages.slice(1) }))
  ctx.once('system-prompt/assemble', async () => {
    throw new Error('no')
  })
  agent.inject(say('left out'))
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(entered(), ['a'])
  assert.deepEqual(heard, ['running', 'error 1.1 no', 'idle'])
})

test('what the log refuses of a batch is given back', async () => {
  const { ctx, agent, heard, idle, entered } = await setup()
  ctx.on('internal/dispatch', (_mode, name, args) => {
    const { type, data } = (args[1] ?? {}) as { type?: string; data?: Message }
    if (name === 'session/event' && type === 'user/message' && data !== undefined && wordsOf(data) === 'b')
      throw new Error('no')
  })
  for (const words of ['a', 'b', 'c']) agent.inject(say(words))
  agent.followup(say('d'))
  await idle()
  assert.deepEqual(entered(), ['a'])
  assert.deepEqual(heard, ['running', 'error 1.1 no', 'parked [] returned [b,c,d]', 'idle'])
})

test('a continuation that a listener empties ends the turn as completed', async () => {
  const { ctx, agent, adapter, idle } = await setup(text('1'))
  ctx.once('agent/turn-stopping', () => agent.steer(say('more')))
  ctx.on('agent/pre-step', async ({ step }, next) => (step === 1 ? next() : { kind: 'enter', messages: [] }))
  agent.followup(say('a'))
  assert.equal(await idle(), 'sp ts sp ss um rh rc ch am se sp sp te:completed')
  assert.equal(adapter.requests.length, 1)
})

test('a first batch that a listener empties asks no model, and parks the queue', async () => {
  const { ctx, agent, heard, idle } = await setup()
  ctx.on('agent/pre-step', async () => ({ kind: 'enter', messages: [] }))
  agent.followup(say('a'))
  agent.followup(say('b'))
  assert.equal(await idle(), 'sp ts sp sp te:completed')
  assert.deepEqual(heard, ['running', 'parked [b] returned []', 'idle'])
})

test('what a pre-step listener lets in is what enters, and the results of tools are owed with or without it', async () => {
  const { ctx, agent, adapter, idle, entered } = await setup(toolCall('noop', {}), text('done'))
  ctx.on('agent/pre-step', async ({ step }) => ({
    kind: 'enter',
    messages: step === 1 ? [say('instead')] : [],
  }))
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(entered(), ['instead'])
  assert.equal(adapter.requests.length, 2)
})

test('a batch that never reached the model is given back, whatever stopped it', async () => {
  const { ctx, agent, heard, idle } = await setup(toolCall('noop', {}))
  const stop = ctx.on('agent/pre-step', async ({ agent: each }, next) => {
    each.cancel({ kind: 'user' })
    return next()
  })
  agent.followup(say('a'))
  await idle()
  assert.equal(heard.at(-2), 'parked [] returned [a]')
  stop()
  ctx.on('agent/pre-step', async ({ step }, next) => (step === 1 ? next() : { kind: 'reject' }))
  ctx.once('tools/result', () => agent.steer(say('c')))
  agent.followup(say('b'))
  assert.match(await idle(), /tc sp tr se sp te:blocked$/)
  assert.equal(heard.at(-2), 'parked [] returned [c]')
})

test('wherever a stop falls, a message is in the history, in the queue or given back, exactly once', async () => {
  let points = 0
  for (let stopAt = 1; points === 0 || stopAt <= points; stopAt++) {
    const { ctx, agent, idle, entered } = await setup(text('ok'))
    const message = say('M')
    let returned: readonly Message[] = []
    let seen = 0
    const maybe = (): void => {
      if (++seen === stopAt) agent.cancel({ kind: 'user' }, { keepInbox: true })
    }
    ctx.on('session/event', maybe)
    ctx.on('agent/status', maybe)
    ctx.on('agent/inbox/inserted', maybe)
    ctx.on('agent/inbox/claimed', maybe)
    ctx.on('agent/pre-step', async (_payload, next) => {
      maybe()
      const decision = await next()
      await nextTask()
      maybe()
      return decision
    })
    ctx.on('agent/parked', payload => (returned = payload.returned))
    agent.followup(message)
    await idle()
    const places = [
      entered().includes('M'),
      agent.inbox.nextTurn.some(({ id }) => id === message.id),
      returned.length > 0,
    ]
    assert.equal(places.filter(Boolean).length, 1, `stopped at ${stopAt}: ${String(places)}`)
    points = Math.max(points, seen)
  }
  assert.ok(points > 15)
})

test('maintenance holds turns back, shows no status, and hands over to the input that came meanwhile', async () => {
  const { agent, heard, idle, log, entered } = await setup(text('ok'))
  const gate = Promise.withResolvers<number>()
  const job = agent.runMaintenance(() => gate.promise)
  assert.equal(agent.status, 'idle')
  assert.throws(() => agent.runMaintenance(async () => {}), { code: 'AGENT_BUSY' })
  agent.followup(say('a'))
  await nextTask()
  assert.equal(log(), 'sp')
  gate.resolve(42)
  assert.equal(await job, 42)
  await idle()
  assert.deepEqual(entered(), ['a'])
  assert.deepEqual(heard, ['running', 'idle'])
  agent.followup(say('b'))
  assert.throws(() => agent.runMaintenance(async () => {}), { code: 'AGENT_BUSY' })
  await idle()
})

test('cancelling maintenance aborts its signal, and drops the input unless it is kept', async () => {
  const { agent, idle, entered } = await setup(text('ok'))
  const untilAborted = (signal: AbortSignal): Promise<unknown> =>
    new Promise(resolve => signal.addEventListener('abort', () => resolve(signal.reason)))
  let job = agent.runMaintenance(untilAborted)
  agent.followup(say('a'))
  agent.cancel({ kind: 'user' })
  assert.deepEqual(await job, { kind: 'user' })
  await idle()
  assert.deepEqual(entered(), [])
  job = agent.runMaintenance(untilAborted)
  agent.followup(say('b'))
  agent.cancel({ kind: 'parent' }, { keepInbox: true })
  await job
  await idle()
  assert.deepEqual(entered(), ['b'])
})

test('maintenance that fails gives its own error, and the agent is free again', async () => {
  const { agent } = await setup()
  const error = new Error('mine')
  await assert.rejects(
    agent.runMaintenance(() => Promise.reject(error)),
    error,
  )
  await assert.rejects(
    agent.runMaintenance(() => {
      throw error
    }),
    error,
  )
  assert.equal(await agent.runMaintenance(async () => 1), 1)
})

test('idle is waited for through whatever follows', async () => {
  const { ctx, agent, entered } = await setup(text('1'), text('2'), text('3'))
  let count = 0
  ctx.on('agent/status', ({ status }) => {
    if (status === 'idle' && ++count < 3) agent.followup(say(`again ${count}`))
  })
  agent.followup(say('a'))
  await agent.whenIdle()
  assert.deepEqual(entered(), ['a', 'again 1', 'again 2'])
})

test('every listener hears running and idle by turns, also when one of them wakes the agent', async () => {
  const { ctx, agent, idle } = await setup(text('1'), text('2'))
  const late: string[] = []
  ctx.once('agent/status', () => {})
  const stop = ctx.on('agent/status', ({ status }) => {
    if (status !== 'idle') return
    stop()
    agent.followup(say('b'))
    assert.equal(agent.status, 'running')
  })
  ctx.on('agent/status', ({ status }) => void late.push(status))
  agent.followup(say('a'))
  await idle()
  assert.deepEqual(late, ['running', 'idle', 'running', 'idle'])
})

test('observers that throw change nothing', async () => {
  const { ctx, agent, idle } = await setup(toolCall('noop', {}), text('ok'))
  const bad = (): never => {
    throw new Error('bad observer')
  }
  ctx.on('session/event', bad)
  ctx.on('agent/status', bad)
  ctx.on('agent/inbox/inserted', bad)
  ctx.on('agent/inbox/claimed', bad)
  ctx.on('tools/result', bad)
  agent.followup(say('a'))
  assert.match(await idle(), /te:completed$/)
  ctx.on('agent/error', bad)
  ctx.once('agent/request', async () => bad())
  agent.followup(say('b'))
  assert.match(await idle(), /te:error\{UNKNOWN\}$/)
})

test('a turn is put away before the next one, and before the agent is idle', async () => {
  const { ctx, agent, idle } = await setup(text('1'), text('2'))
  const order: string[] = []
  ctx.on('session/event', (_session, { type }) => {
    if (type === 'turn/start' || type === 'turn/end') order.push(type)
  })
  ctx.on('agent/status', ({ status }) => void order.push(status))
  ctx.on('session/flush', async () => {
    order.push('flush')
    await nextTask()
    order.push('flushed')
  })
  agent.followup(say('a'))
  agent.followup(say('b'))
  await idle()
  const turn = ['turn/start', 'turn/end', 'flush', 'flushed']
  assert.deepEqual(order, ['running', ...turn, ...turn, 'idle'])
})

test('a turn that could not be put away stops the agent with its queue', async () => {
  const { ctx, agent, heard, idle, entered } = await setup(text('1'), text('2'), text('3'))
  ctx.once('session/flush', () => {
    throw new Error('disk full')
  })
  agent.followup(say('a'))
  agent.followup(say('b'))
  assert.match(await idle(), /te:completed$/)
  assert.equal(heard.length, 4)
  assert.match(heard[1] ?? '', /^error 1\.1 /)
  assert.deepEqual(heard.slice(2), ['parked [b] returned []', 'idle'])
  agent.inbox.clear()
  ctx.once('agent/request', async () => {
    throw new Error('no')
  })
  ctx.once('session/flush', async () => {
    agent.followup(say('d'))
    throw new Error('disk full')
  })
  agent.followup(say('c'))
  await idle()
  assert.deepEqual(heard.slice(-2), ['parked [d] returned []', 'idle'])
  agent.followup(say('e'))
  await idle()
  assert.deepEqual(entered(), ['a', 'c', 'd', 'e'])
})

test('a cancel while a turn is put away leaves its end as it is, and stops', async () => {
  const { ctx, agent, idle, entered } = await setup(text('1'))
  ctx.once('session/flush', () => agent.cancel({ kind: 'user' }, { keepInbox: true }))
  agent.followup(say('a'))
  agent.followup(say('b'))
  assert.match(await idle(), /te:completed$/)
  assert.deepEqual(entered(), ['a'])
})

test('a turn that the log refuses does not happen', async () => {
  const { ctx, agent, heard, idle, entered } = await setup(text('ok'))
  const stop = ctx.on('internal/dispatch', (_mode, name, args) => {
    if (name === 'session/event' && (args[1] as { type: string }).type === 'turn/start') throw new Error('no')
  })
  agent.followup(say('a'))
  assert.equal(await idle(), 'sp')
  assert.deepEqual(heard, ['running', 'error 0.0 no', 'parked [a] returned []', 'idle'])
  stop()
  agent.steer(say('b'))
  await idle()
  assert.deepEqual(entered(), ['b', 'a'])
})

test('an end that the log refuses is written before the next turn begins', async () => {
  const { ctx, agent, heard, idle, log } = await setup(text('1'), text('2'), text('3'))
  const stop = ctx.on('internal/dispatch', (_mode, name, args) => {
    const { type } = (args[1] ?? {}) as { type?: string }
    if (name === 'session/event' && (type === 'step/end' || type === 'turn/end')) throw new Error('no')
  })
  agent.followup(say('a'))
  await agent.whenIdle()
  assert.match(log(), / ch am$/)
  assert.deepEqual(heard, ['running', 'error 1.1 no', 'error 1.1 no', 'idle'])
  agent.followup(say('b'))
  await agent.whenIdle()
  assert.deepEqual(heard.slice(4), ['running', 'error 0.0 no', 'parked [b] returned []', 'idle'])
  assert.match(log(), / ch am sp$/)
  stop()
  agent.followup(say('c'))
  assert.match(await idle(), / ch am sp sp se te:error\{UNKNOWN\} ts sp ss um ch am se te:completed ts /)
  assert.match(log(), /te:completed$/)
})

test('a turn whose end the log refuses stops the agent with its queue', async () => {
  const { ctx, agent, heard, idle, entered } = await setup(text('1'), text('2'), text('3'))
  const stop = ctx.on('internal/dispatch', (_mode, name, args) => {
    const { type } = (args[1] ?? {}) as { type?: string }
    if (name !== 'session/event' || type !== 'turn/end') return
    stop()
    throw new Error('no')
  })
  agent.followup(say('a'))
  agent.followup(say('b'))
  await agent.whenIdle()
  assert.deepEqual(heard, ['running', 'error 1.1 no', 'parked [b] returned []', 'idle'])
  agent.followup(say('c'))
  await idle()
  assert.deepEqual(entered(), ['a', 'b', 'c'])
})

test('a policy that throws fails the turn at the step it spoke about', async () => {
  const { ctx, agent, heard, idle } = await setup(text('ok'))
  ctx.once('agent/pre-step', async () => {
    throw new Error('pre', { cause: new Error('deeper') })
  })
  agent.followup(say('a'))
  assert.equal(await idle(), 'sp ts sp te:error{UNKNOWN}')
  assert.deepEqual(heard, ['running', 'error 1.1 pre', 'parked [] returned [a]', 'idle'])
  const end = agent.session.events.at(-1)
  assert.deepEqual(end?.type === 'turn/end' && end.data.reason, {
    kind: 'error',
    error: { message: 'pre: deeper', code: 'UNKNOWN' },
  })
  ctx.once('agent/turn-stopping', () => {
    throw new Error('stopping')
  })
  agent.followup(say('b'))
  assert.match(await idle(), / ch am se te:error\{UNKNOWN\}$/)
})

test('a section that cannot be made fails the open step, a runtime context the turn before it', async () => {
  const { ctx, agent, heard, idle } = await setup()
  const bad = (): never => {
    throw new Error('no clock')
  }
  const undo = ctx.systemPrompt.section({ name: 'bad', order: 0, text: bad })
  agent.followup(say('a'))
  assert.equal(await idle(), 'sp ts sp ss um se te:error{UNKNOWN}')
  assert.match(heard[1] ?? '', /^error 1\.1 .*no clock|^error 1\.1 /)
  undo()
  ctx.systemPrompt.context({ name: 'time', order: 0, text: bad })
  agent.followup(say('b'))
  assert.match(await idle(), /te:error\{UNKNOWN\} sp ts sp te:error\{UNKNOWN\}$/)
  assert.equal(heard.at(-2), 'parked [] returned [b]')
})

test('a hostile error still ends the turn', async () => {
  const { ctx, agent, idle } = await setup()
  const hostile = new Proxy(
    {},
    {
      get: () => {
        throw new Error('trap')
      },
      getOwnPropertyDescriptor: () => {
        throw new Error('trap')
      },
    },
  )
  ctx.once('agent/pre-step', () => Promise.reject(hostile))
  agent.followup(say('a'))
  assert.equal(await idle(), 'sp ts sp te:error{UNKNOWN}')
})

test('code knows on whose behalf it runs, also where drivers overlap', async () => {
  const harness = await createHarness()
  const { ctx, adapter } = harness
  const seen: [string, string | undefined][] = []
  const note = (where: string): void => void seen.push([where, ctx.agents.currentInitiator()?.id])
  ctx.tools.register(
    defineTool({
      name: 'who',
      description: 'Who.',
      parameters: { id: { type: 'string', required: true } },
      execute: async ({ id }) => {
        note(id)
        await nextTask()
        note(id)
        return 'ok'
      },
    }),
  )
  const [a, b] = [harness.agent('a'), harness.agent('b')]
  ctx.on('agent/pre-step', async ({ agent }, next) => {
    note(agent.id)
    return next()
  })
  ctx.on('session/event', session => note(session.id))
  const answer: ScriptEntry = async ({ sessionId, messages }) => {
    note(sessionId ?? '')
    await nextTask()
    return messages.length === 1 ? toolCall('who', { id: sessionId ?? '' }) : text('ok')
  }
  adapter.push(answer, answer, answer, answer)
  a.followup(say('go'))
  b.followup(say('go'))
  await Promise.all([a.whenIdle(), b.whenIdle()])
  const inside = seen.filter(([, who]) => who !== undefined)
  assert.ok(inside.length > 40)
  for (const [where, who] of inside) assert.equal(who, where)
})
