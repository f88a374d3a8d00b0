import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import {
  answerFact,
  callFact,
  headerFact,
  logOf,
  resultFact,
  textFact,
  userFact,
} from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { SessionStore } from '../session/index.ts'
import { InvariantError, Invariants, lintLog } from './index.ts'
import type { InvariantsConfig, LogCheck } from './index.ts'

const start: Draft = ['turn/start', { turn: 1 }]
const end: Draft = ['turn/end', { turn: 1, reason: { kind: 'completed' } }]
const step: Draft = ['step/start', { turn: 1, step: 1 }]
const stepEnd: Draft = ['step/end', { turn: 1, step: 1 }]
const answer: Draft = ['assistant/message', answerFact('', ['a'])]
const call: Draft = ['tool/call', callFact('a')]
const result: Draft = ['tool/result', resultFact('a', 'x')]
const shorter: Draft = [
  'tool/result',
  resultFact('a', ''),
  { surfaceOp: { op: 'replace', start: 4, end: 4 }, sourceEventSeqs: [4] },
]
const notStarted: Draft = [
  'tool/result',
  resultFact('a', 'x', { error: { name: 'E', code: 'TOOL_NOT_STARTED' } }),
]

test('a run that keeps the rules has no violation', () => {
  const events = logOf(
    ['command/run', { commandId: 'c' as never, name: 'x', source: { kind: 'user' } }],
    start,
    ['todo/write', { todos: [] }],
    step,
    ['user/message', userFact('hi')],
    ['request/header', headerFact()],
    ['request/context', { provider: 'mock', model: 'mock' }],
    ['assistant/chunk', textFact('x')],
    answer,
    call,
    ['tool/start', { turn: 1, step: 1, callId: CallId('a') }],
    result,
    stepEnd,
    ['step/start', { turn: 1, step: 2 }],
    ['assistant/message', answerFact('done', [], { step: 2 })],
    ['step/end', { turn: 1, step: 2 }],
    end,
    ['user/message', userFact('between')],
    ['session/end-seed', {}],
    ['turn/start', { turn: 2 }],
    shorter,
    ['turn/end', { turn: 2, reason: { kind: 'blocked' } }],
  )
  assert.deepEqual(lintLog(events), [])
})

const wrong: readonly (readonly [drafts: readonly Draft[], message: string])[] = [
  [[['turn/start', { turn: 2 }]], 'turn 2 follows turn 0'],
  [[start, ['turn/start', { turn: 2 }]], 'turn 2 starts inside turn 1'],
  [[start, end, start], 'turn 1 follows turn 1'],
  [[end], 'it stands outside of a turn'],
  [[start, ['turn/end', { turn: 2, reason: { kind: 'completed' } }]], 'it names turn 2 inside turn 1'],
  [[start, step, end], 'turn 1 ends inside step 1'],
  [[step], 'it stands outside of a turn'],
  [[start, ['step/start', { turn: 1, step: 2 }]], 'step 1.2 follows step 0'],
  [[start, step, step], 'step 1.1 starts inside step 1'],
  [[start, stepEnd], 'it stands outside of a step'],
  [[start, ['assistant/chunk', textFact('x')]], 'it stands outside of a step'],
  [[start, step, ['assistant/chunk', textFact('x', { step: 2 })]], 'it names step 2 inside step 1'],
  [[answer], 'it stands outside of a turn'],
  [[start, step, ['tool/call', callFact('a', { turn: 3 })]], 'it names turn 3 inside turn 1'],
  [[start, step, answer, result], 'no call "a" waits in this step'],
  [[start, step, answer, call, result, result], 'no call "a" waits in this step'],
  [
    [start, step, answer, ['tool/start', { turn: 1, step: 1, callId: CallId('a') }]],
    'no call "a" waits in this step',
  ],
  [[start, step, answer, call, stepEnd], 'the step ends while call "a" has no result'],
  [[['todo/write', { todos: [] }]], 'it stands outside of a turn'],
  [[['request/header', headerFact()]], 'it stands outside of a turn'],
  [[['request/context', { provider: 'p', model: 'm' }]], 'it stands outside of a turn'],
  [[start, step, answer, call, result, stepEnd, end, shorter], 'it stands outside of a turn'],
]

for (const [drafts, message] of wrong) {
  const types = drafts.map(([type]) => type).join(', ')
  test(`${types}: ${message}`, () => {
    const events = logOf(...drafts)
    const [violation, ...more] = lintLog(events)
    assert.deepEqual(
      { seq: violation?.seq, type: violation?.type, message: violation?.message, more },
      { seq: events.length - 1, type: drafts.at(-1)?.[0], message, more: [] },
    )
  })
}

test('a call that never started needs no record of its start', () => {
  assert.deepEqual(lintLog(logOf(start, step, answer, notStarted, stepEnd, end)), [])
})

test('a call that is made twice under one id is answered twice', () => {
  const twice: Draft = ['assistant/message', answerFact('', ['a', 'a'])]
  assert.deepEqual(lintLog(logOf(start, step, twice, call, call, result, result, stepEnd)), [])
})

async function setup(
  config: InvariantsConfig = {},
): Promise<{ ctx: Context; errors: unknown[]; told: number[] }> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(Invariants, config)
  const errors: unknown[] = []
  const told: number[] = []
  ctx.on('internal/error', error => {
    errors.push(error)
  })
  ctx.on('session/event', (_session, event) => {
    told.push(event.seq)
  })
  return { ctx, errors, told }
}

test('a broken rule is reported by its check and changes nothing', async () => {
  const { ctx, errors } = await setup()
  const session = ctx.sessions.create(SessionId('s'))
  session.append('turn/start', { turn: 1 })
  session.append('turn/start', { turn: 3 })
  session.append('turn/end', { turn: 3, reason: { kind: 'completed' } })
  assert.equal(session.length, 3)
  assert.deepEqual(
    errors.map(error => (error as Error).message),
    ['enclosure: event 1 ("turn/start") of session "s": turn 3 starts inside turn 1'],
  )
  assert.ok(errors[0] instanceof InvariantError)
  assert.equal(errors[0].check, 'enclosure')
  assert.deepEqual(
    ctx.invariants.lint(session).map(violation => violation.seq),
    [1],
  )
})

test('in the mode to refuse, a wrong event never gets into the log', async () => {
  const { ctx, told, errors } = await setup({ mode: 'refuse' })
  const session = ctx.sessions.create(SessionId('s'))
  session.append('turn/start', { turn: 1 })
  assert.throws(() => session.append('turn/start', { turn: 2 }), { code: 'INVARIANT', check: 'enclosure' })
  session.append('step/start', { turn: 1, step: 1 })
  assert.deepEqual(told, [0, 1])
  assert.deepEqual(errors, [])
})

test('what a seed did wrong is reported once, and the session goes on', async () => {
  for (const mode of ['report', 'refuse'] as const) {
    const { ctx, errors } = await setup({ mode })
    const session = ctx.sessions.create(SessionId('s'), { seed: logOf(['turn/start', { turn: 4 }]) })
    session.append('step/start', { turn: 4, step: 1 })
    session.append('step/end', { turn: 4, step: 1 })
    assert.equal(errors.length, 1)
    assert.equal(session.length, 4)
  }
})

test('events that observers append are checked in the order of the log', async () => {
  const { ctx, errors } = await setup()
  ctx.on('session/event', (session, event) => {
    if (event.type === 'turn/start') session.append('step/start', { turn: 1, step: 1 })
  })
  const session = ctx.sessions.create()
  session.append('turn/start', { turn: 1 })
  session.append('step/end', { turn: 1, step: 1 })
  assert.deepEqual(errors, [])
})

const noTodos: LogCheck<undefined> = {
  name: 'no todos',
  start: undefined,
  problem: (_state, event: SessionEvent) => (event.type === 'todo/write' ? 'there are todos' : undefined),
  after: state => state,
}

test('a plugin adds a rule about logs, which ends with it, and whose name is its own', async () => {
  const { ctx, errors } = await setup()
  const plugin = ctx.plugin(function strict(own: Context) {
    own.invariants.registerLogCheck(noTodos)
  })
  assert.throws(() => ctx.invariants.registerLogCheck(noTodos), { code: 'DUPLICATE_NAME' })
  const session = ctx.sessions.create()
  session.append('turn/start', { turn: 1 })
  session.append('todo/write', { todos: [] })
  assert.equal(errors.length, 1)
  await plugin.dispose()
  session.append('todo/write', { todos: [] })
  assert.equal(errors.length, 1)
  ctx.invariants.registerLogCheck(noTodos)
})

test('which checks run is a setting, and blocking outweighs allowing', async () => {
  const violate = async (config: InvariantsConfig): Promise<number> => {
    const { ctx, errors } = await setup(config)
    ctx.invariants.registerLogCheck(noTodos)
    const session = ctx.sessions.create()
    session.append('todo/write', { todos: [] })
    return errors.length
  }
  assert.equal(await violate({}), 2)
  assert.equal(await violate({ enabled: false }), 0)
  assert.equal(await violate({ allow: ['todos$'] }), 1)
  assert.equal(await violate({ block: ['^enclosure$'] }), 1)
  assert.equal(await violate({ allow: ['todos'], block: ['^no'] }), 0)
  await assert.rejects(setup({ block: ['('] }), { code: 'INVALID_CONFIG', message: /block/ })
})

test('a companion watches through a context of its own and fails as the mode says', async () => {
  const companion = {
    inject: ['sessions'],
    install: (own: Context, fail: (message: string) => void): void => {
      own.on('session/created', session => {
        if (session.id === 'bad') fail(`session "${session.id}" is bad`)
      })
    },
  }
  const lax = await setup()
  const stop = lax.ctx.invariants.register('names', companion)
  lax.ctx.sessions.create(SessionId('bad'))
  assert.deepEqual(
    lax.errors.map(error => (error as Error).message),
    ['names: session "bad" is bad'],
  )
  await stop()
  lax.ctx.sessions.create(SessionId('x'))
  lax.ctx.invariants.register('names', companion)

  const strict = await setup({ mode: 'refuse' })
  strict.ctx.invariants.register('names', companion)
  assert.throws(() => strict.ctx.sessions.create(SessionId('bad')), { code: 'INVARIANT', check: 'names' })
})

test('a companion that cannot be installed leaves nothing behind, and its name is free again', async () => {
  const { ctx } = await setup()
  const no = new Error('no')
  const broken = {
    install: (): void => {
      throw no
    },
  }
  assert.throws(() => ctx.invariants.register('broken', broken), no)
  await ctx.invariants.register('broken', { install: () => {} })()
})

test('everything ends with the plugin', async () => {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const plugin = ctx.plugin(Invariants, { mode: 'refuse' })
  await plugin
  const session = ctx.sessions.create()
  await plugin.dispose()
  session.append('turn/start', { turn: 9 })
  assert.equal(ctx.get('invariants'), undefined)
})
