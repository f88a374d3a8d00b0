import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ImageBlock, SessionEvent } from '@dsh/protocol'
import { createHarness, say } from '../../testing/index.ts'
import type { Agent } from '../agent/index.ts'
import { parseCommand } from './index.ts'
import type { Attachments, CommandDefinition, CommandInvocation, CommandResult } from './index.ts'

const never = new AbortController().signal

async function setup(script: Parameters<typeof createHarness>[0] = []) {
  const harness = await createHarness(script)
  const agent = harness.agent()
  const { commands } = harness.ctx
  const add = (name: string, handler: CommandDefinition['handler'], more: Partial<CommandDefinition> = {}) =>
    commands.register({ name, description: `Does ${name}`, handler, ...more })
  const run = (line: string, signal: AbortSignal = never) => commands.execute(agent, line, signal)
  return { ...harness, createAgent: harness.agent, agent, commands, add, run }
}

/** What the log says of commands, ids left out. */
function logged(agent: Agent): [type: string, data: object][] {
  return commandEvents(agent).map(({ type, data }) => {
    const { commandId: _, ...rest } = data as { readonly commandId: string }
    return [type, rest]
  })
}

function commandEvents(agent: Agent): SessionEvent[] {
  return [...agent.session.since(0)].filter(({ type }) => type.startsWith('command/'))
}

const source = { kind: 'user' }

test('a line is a command from its first byte to the end of the name', () => {
  assert.deepEqual(parseCommand('/ping'), { name: 'ping', rawInput: '' })
  assert.deepEqual(parseCommand('/ping  hello\n there '), { name: 'ping', rawInput: '  hello\n there ' })
  assert.deepEqual(parseCommand('/plan-mode_2\ton'), { name: 'plan-mode_2', rawInput: '\ton' })
  for (const line of [
    '',
    'ping',
    ' /ping',
    '/',
    '/ ping',
    '/Ping',
    '/goal/path',
    '/ping!',
    '/1st',
    '/ping\u00a0x',
    '//x',
  ]) {
    assert.equal(parseCommand(line), undefined)
  }
})

test('a command runs beside the turns, with beginning and end in the log', async () => {
  const { agent, adapter, add, run } = await setup()
  add('ping', () => ({ kind: 'success', text: 'pong' }))
  const execution = await run('/ping hello')
  assert.deepEqual(execution?.result, { kind: 'success', text: 'pong' })
  assert.match(execution?.commandId ?? '', /^cmd-[0-9a-f]{12}-1$/)
  assert.deepEqual(logged(agent), [
    ['command/run', { name: 'ping', args: ' hello', source }],
    ['command/done', { kind: 'success', text: 'pong' }],
  ])
  assert.deepEqual(
    new Set(commandEvents(agent).map(({ data }) => (data as { commandId: string }).commandId)),
    new Set([execution?.commandId]),
  )
  assert.deepEqual(agent.session.messages, [])
  assert.equal(adapter.requests.length, 0)
  assert.equal(agent.session.length, 2)
})

test('a line that calls no command logs nothing', async () => {
  const { agent, run } = await setup()
  assert.equal(await run('/x'), undefined)
  assert.equal(await run('hello'), undefined)
  assert.equal(agent.session.length, 0)
})

test('a caller who already gave up is refused before anything is logged', async () => {
  const { agent, add, run } = await setup()
  add('ping', () => {})
  const reason = { kind: 'user' }
  await assert.rejects(run('/ping', AbortSignal.abort(reason)), {
    code: 'COMMAND_CANCELLED',
    message: '/ping was cancelled',
    cause: reason,
  })
  assert.equal(agent.session.length, 0)
  assert.equal(await run('/x', AbortSignal.abort()), undefined)
})

test('input that a command keeps to itself is not logged, but given', async () => {
  const { agent, add, run } = await setup()
  let seen: CommandInvocation | undefined
  add('login', invocation => void (seen = invocation), { recordInput: false })
  const execution = await run('/login secret')
  assert.deepEqual(logged(agent)[0], ['command/run', { name: 'login', source }])
  assert.deepEqual(seen, {
    commandId: execution?.commandId,
    agent,
    rawInput: ' secret',
    attachments: [],
    signal: never,
  })
  assert.ok(Object.isFrozen(seen))
})

test('a handler that gives nothing succeeded, one that says error failed', async () => {
  const { agent, add, run } = await setup()
  add('quiet', async () => {})
  add('bad', () => ({ kind: 'error', text: 'no such plan' }))
  assert.deepEqual((await run('/quiet'))?.result, { kind: 'success' })
  assert.deepEqual((await run('/bad'))?.result, { kind: 'error', text: 'no such plan' })
  assert.deepEqual(
    logged(agent).filter(([type]) => type === 'command/done'),
    [
      ['command/done', { kind: 'success' }],
      ['command/done', { kind: 'error', text: 'no such plan' }],
    ],
  )
})

test('what a handler throws is logged as its end, and thrown on', async () => {
  const { agent, add, run } = await setup()
  const error = new Error('disk full')
  add('sync', () => {
    throw error
  })
  add('async', async () => {
    throw error
  })
  for (const name of ['sync', 'async']) {
    await assert.rejects(run(`/${name}`), thrown => thrown === error)
    assert.deepEqual(logged(agent).at(-1), ['command/done', { kind: 'error', text: 'disk full' }])
  }
})

test('what is no result is an error of the handler', async () => {
  const { agent, add, run } = await setup()
  let result: unknown
  add('odd', () => result as CommandResult)
  const problem = async (given: unknown): Promise<string> => {
    result = given
    await assert.rejects(run('/odd'), TypeError)
    const [type, data] = logged(agent).at(-1) ?? []
    assert.equal(type, 'command/done')
    return (data as { text: string }).text
  }
  assert.equal(await problem({ kind: 'maybe' }), '/odd gave neither success nor error')
  assert.equal(await problem({ kind: 'error', text: ' ' }), '/odd failed without saying why')
  assert.equal(await problem({ kind: 'success', text: 1 }), '/odd gave a text that is none')
  assert.equal(
    await problem({ kind: 'success', sourceEventSeq: 99 }),
    '/odd names the event 99, which the log does not have',
  )
  assert.equal(
    await problem({ kind: 'success', sourceEventSeq: 0 }),
    '/odd names the event 0, which is itself one of a command',
  )
})

test('a result may name the event that holds what was done', async () => {
  const { agent, add, run } = await setup()
  add('todo', ({ agent: { session } }) => {
    const { seq } = session.append('todo/write', { todos: [] })
    return { kind: 'success', sourceEventSeq: seq }
  })
  assert.deepEqual((await run('/todo'))?.result, { kind: 'success', sourceEventSeq: 1 })
  assert.deepEqual(logged(agent).at(-1), ['command/done', { kind: 'success', sourceEventSeq: 1 }])
})

test('an abort ends the wait for a handler that does not listen, and what comes of it later is dropped', async () => {
  const { agent, add, run } = await setup()
  const gate = Promise.withResolvers<CommandResult>()
  const controller = new AbortController()
  add('slow', () => gate.promise)
  const running = run('/slow', controller.signal)
  controller.abort()
  await assert.rejects(running, { code: 'COMMAND_CANCELLED' })
  assert.deepEqual(logged(agent).at(-1), ['command/done', { kind: 'error', text: '/slow was cancelled' }])
  gate.reject(new Error('late'))
  await new Promise(setImmediate)
  assert.equal(commandEvents(agent).length, 2)
})

test('every beginning has one end, and no two runs share an id, also when the log is resumed', async () => {
  const ids: string[] = []
  for (let life = 0; life < 2; life++) {
    const { agent, add, run } = await setup()
    add('ok', () => {})
    add('bad', () => {
      throw new Error('no')
    })
    await Promise.allSettled([run('/ok'), run('/bad'), run('/ok')])
    const done = commandEvents(agent).filter(({ type }) => type === 'command/done')
    ids.push(...done.map(({ data }) => (data as { commandId: string }).commandId))
  }
  assert.equal(new Set(ids).size, 6)
})

test('a command in the middle of a turn leaves the turn as it is', async () => {
  const { ctx, agent, add, run } = await setup([[{ type: 'finish', reason: { kind: 'stop' } }]])
  add('ping', () => ({ kind: 'success', text: 'pong' }))
  ctx.on('agent/pre-step', async (_payload, next) => {
    await run('/ping')
    return next()
  })
  agent.followup(say('hi'))
  await agent.whenIdle()
  const turns = [...agent.session.since(0)]
    .map(({ type }) => type)
    .filter(type => /^(turn|step|command)/.test(type))
  assert.deepEqual(turns, ['turn/start', 'command/run', 'command/done', 'step/start', 'step/end', 'turn/end'])
})

test('a log that refuses the end of a failed command does not hide why it failed', async () => {
  const { ctx, add, run } = await setup()
  const reported: unknown[] = []
  ctx.on('internal/error', error => void reported.push(error))
  const error = new Error('the reason')
  add('bad', ({ agent: { session } }) => {
    const refuse = ctx.on('internal/dispatch', (_mode, name) => {
      if (name === 'session/event') throw new Error('log closed')
    })
    assert.throws(() => session.append('todo/write', { todos: [] }), /log closed/)
    void refuse
    throw error
  })
  await assert.rejects(run('/bad'), thrown => thrown === error)
  assert.match(String(reported.at(-1)), /log closed/)
})

test('commands are listed by name, and those of an agent hide those of everybody', async () => {
  const { agent, createAgent, commands, add, run } = await setup()
  const other = createAgent()
  add('zoom', () => {})
  add('ask', () => ({ kind: 'success', text: 'all' }), { input: { hint: '<question>' } })
  const undo = agent.ctx.commands.register({
    name: 'ask',
    description: 'Asks mine',
    handler: () => ({ kind: 'success', text: 'mine' }),
  })
  assert.deepEqual(commands.list(agent), [
    { name: 'ask', description: 'Asks mine' },
    { name: 'zoom', description: 'Does zoom' },
  ])
  assert.deepEqual(commands.find(other, 'ask'), {
    name: 'ask',
    description: 'Does ask',
    input: { hint: '<question>' },
  })
  assert.ok(commands.list(agent).every(Object.isFrozen))
  assert.equal(commands.find(other, 'nothing'), undefined)
  assert.deepEqual((await run('/ask'))?.result, { kind: 'success', text: 'mine' })
  undo()
  assert.deepEqual((await run('/ask'))?.result, { kind: 'success', text: 'all' })
})

test('a change is told of what comes and goes, and no listener stands in the way', async () => {
  const { ctx, agent, commands, add } = await setup()
  const seen: string[][] = []
  ctx.on('commands/change', () => {
    throw new Error('contained')
  })
  ctx.on('commands/change', () => void seen.push(commands.list(agent).map(({ name }) => name)))
  const plugin = ctx.plugin(
    own => void own.commands.register({ name: 'ping', description: 'Pings', handler: () => {} }),
  )
  await plugin
  await plugin.dispose()
  assert.deepEqual(seen, [['ping'], []])
  add('ping', () => {})
  assert.throws(() => add('ping', () => {}), { code: 'DUPLICATE_NAME' })
})

test('a command that could not be called or shown is refused when it is registered', async () => {
  const { add } = await setup()
  const refuse = (part: object, message: RegExp): void =>
    assert.throws(() => add('x', () => {}, part), { name: 'TypeError', message })
  for (const name of ['', 'Ping', 'a b', '1st', '/x', 'é'])
    refuse({ name }, /cannot be the name of a command/)
  refuse({ description: ' ' }, /command "x" has no description/)
  refuse({ handler: 1 }, /command "x" has no handler/)
  refuse({ input: {} }, /the input of command "x" has no hint/)
})

const images = [{ data: 'AAAA', mediaType: 'image/png' }]
const block: ImageBlock = { type: 'image', attachment: { sha256: 'f00', mediaType: 'image/png', bytes: 3 } }

/** Commands need nothing else of a store. */
const store = (admitEncodedImages: Attachments['admitEncodedImages']): Attachments =>
  ({ admitEncodedImages }) as Partial<Attachments> as Attachments

test('pictures are stored before the command sees them', async () => {
  const { ctx, agent, commands, add } = await setup()
  let seen: CommandInvocation | undefined
  const admitted: unknown[] = []
  ctx.provide(
    'attachments',
    store(async (given, { session }) => (admitted.push(given, session), [block])),
  )
  add('look', invocation => void (seen = invocation), { input: { hint: '', images: true } })
  await commands.execute(agent, '/look', never, { images })
  assert.deepEqual(seen?.attachments, [block])
  assert.ok(Object.isFrozen(seen?.attachments))
  assert.deepEqual(admitted, [images, agent.session])
})

test('pictures that are not wanted, cannot be stored or are refused end the command before it begins', async () => {
  const { ctx, agent, commands, add } = await setup()
  let ran = 0
  add('plain', () => void ran++)
  add('look', () => void ran++, { input: { hint: '', images: true } })
  const result = async (line: string): Promise<unknown> => {
    const execution = await commands.execute(agent, line, never, { images })
    assert.deepEqual(logged(agent).at(-1), ['command/done', execution?.result])
    return execution?.result
  }
  assert.deepEqual(await result('/plain'), { kind: 'error', text: '/plain takes no pictures' })
  assert.deepEqual(await result('/look'), { kind: 'error', text: 'pictures cannot be stored here' })
  ctx.provide(
    'attachments',
    store(async () => {
      throw new Error('at most 20 pictures fit')
    }),
  )
  assert.deepEqual(await result('/look'), { kind: 'error', text: 'at most 20 pictures fit' })
  assert.equal(ran, 0)
})

test('an abort while pictures are stored keeps the command from beginning', async () => {
  const { ctx, agent, commands, add } = await setup()
  let ran = 0
  const controller = new AbortController()
  ctx.provide(
    'attachments',
    store(async () => {
      controller.abort()
      return [block]
    }),
  )
  add('look', () => void ran++, { input: { hint: '', images: true } })
  await assert.rejects(commands.execute(agent, '/look', controller.signal, { images }), {
    code: 'COMMAND_CANCELLED',
  })
  assert.equal(ran, 0)
  assert.deepEqual(logged(agent).at(-1), ['command/done', { kind: 'error', text: '/look was cancelled' }])
})
