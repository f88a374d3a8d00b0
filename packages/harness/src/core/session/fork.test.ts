import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { answerFact, callFact, headerFact, logOf, resultFact, userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { lintLog } from '../invariants/index.ts'
import { EventTypes, Session, SessionStore, turnCursor } from './index.ts'

/** Turn 1 is whole, a fact stands between the turns, turn 2 is in the middle of its calls. */
const drafts: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('one')],
  ['request/header', headerFact()],
  ['assistant/message', answerFact('first')],
  ['step/end', { turn: 1, step: 1 }],
  ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
  ['command/run', { commandId: 'c' as never, name: 'x', source: { kind: 'user' } }],
  ['turn/start', { turn: 2 }],
  ['step/start', { turn: 2, step: 1 }],
  ['assistant/message', answerFact('', ['a', 'b'], { turn: 2 })],
  ['tool/call', callFact('a', { turn: 2 })],
  ['tool/result', resultFact('a', 'done', { turn: 2 })],
  ['tool/call', callFact('b', { turn: 2 })],
]

async function setup(): Promise<{ ctx: Context; source: Session }> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const source = ctx.sessions.create(SessionId('source'), { meta: { cwd: '/work' } })
  const append = source.append.bind(source) as (type: string, data: unknown, intent?: object) => void
  for (const { type, data, surfaceOp } of logOf(...drafts)) append(type, data, surfaceOp && { surfaceOp })
  return { ctx, source }
}

const child = SessionId('child')

test('a fork begins with the events up to its boundary and goes on by itself', async () => {
  for (const boundary of [6, 7]) {
    const { ctx, source } = await setup()
    const fork = ctx.sessions.fork(source, boundary, child)
    const length = boundary + 1
    assert.deepEqual(fork.events.slice(0, length), source.events.slice(0, length))
    assert.deepEqual(fork.header, {
      version: 0,
      id: 'child',
      createdAt: fork.header.createdAt,
      cwd: '/work',
      parentSession: 'source',
      seedLength: length,
    })
    assert.equal(fork.firstLiveSeq, length)
    assert.deepEqual(
      [fork.at(length)?.type, fork.at(length)?.data],
      ['session/end-seed', { inherited: true }],
    )
    assert.equal(fork.length, length + 1)
    assert.equal(ctx.sessions.get(child), fork)
    assert.deepEqual(fork.requestHeader(), source.requestHeader())
    assert.deepEqual(fork.messages, source.messages.slice(0, 2))

    fork.append('turn/start', { turn: fork.fold(turnCursor).lastTurn + 1 })
    source.append('tool/result', resultFact('b', 'done', { turn: 2 }), { surfaceOp: 'append' })
    assert.equal(fork.last('turn/start')?.data.turn, 2)
    assert.equal(fork.length, length + 2)
    assert.equal(fork.messages.length, 2)
    assert.ok(fork.events.every(event => Object.isFrozen(event)))
  }
})

test('without a boundary a fork has everything, and of an empty session nothing', async () => {
  const { ctx } = await setup()
  const empty = ctx.sessions.create(SessionId('empty'))
  const fork = ctx.sessions.fork(empty.id)
  assert.deepEqual(
    fork.events.map(event => event.type),
    ['session/end-seed'],
  )
  assert.equal(fork.header.seedLength, 0)
  empty.append('command/run', { commandId: 'c' as never, name: 'x', source: { kind: 'user' } })
  assert.equal(ctx.sessions.fork(empty).header.seedLength, 1)
})

test('inside an open turn a fork is refused, and there is no child', async () => {
  const { ctx, source } = await setup()
  for (const boundary of [8, 10, 13, undefined]) {
    assert.throws(() => ctx.sessions.fork(source, boundary, child), {
      name: 'SessionForkError',
      code: 'OPEN_TURN',
      message: `turn 2 of session "source" is open at event ${boundary ?? 13}`,
    })
    assert.equal(ctx.sessions.get(child), undefined)
  }
})

test('a fork may end the open turn itself, with events of its own', async t => {
  const { ctx, source } = await setup()
  t.mock.timers.enable({ apis: ['Date'], now: 1 })
  const fork = ctx.sessions.fork(source, undefined, child, { openTurn: 'close' })
  assert.deepEqual(fork.events.slice(0, 14), source.events)
  assert.equal(fork.header.seedLength, 14)
  assert.equal(fork.firstLiveSeq, 14)
  const own = fork.events.slice(14)
  assert.deepEqual(
    own.map(event => event.type),
    ['session/end-seed', 'tool/result', 'step/end', 'turn/end'],
  )
  const { time } = source.events[13] ?? {}
  assert.ok(own.every((event, index) => event.time === time && event.seq === 14 + index))
  const [mark, result, , end] = own
  assert.deepEqual(mark?.data, { inherited: true })
  assert.ok(result?.type === 'tool/result')
  assert.equal(result.data.error?.code, 'TOOL_OUTCOME_UNKNOWN')
  assert.deepEqual(result.sourceEventSeqs, [13])
  assert.deepEqual(end?.data, { turn: 2, reason: { kind: 'forked' } })
  assert.deepEqual(lintLog(fork.events), [])
  assert.equal(fork.messages.length, 5)
})

test('the option to close changes nothing where no turn is open', async () => {
  const { ctx, source } = await setup()
  const fork = ctx.sessions.fork(source, 6, child, { openTurn: 'close' })
  assert.equal(fork.length, 8)
})

test('every mistake in a fork has its code, the taken id first', async () => {
  const { ctx, source } = await setup()
  const refuse = (code: string, ...args: Parameters<SessionStore['fork']>): void =>
    assert.throws(() => ctx.sessions.fork(...args), { name: 'SessionForkError', code })
  refuse('SESSION_ALREADY_EXISTS', source, 99, SessionId('source'))
  refuse('SESSION_NOT_FOUND', SessionId('nobody'))
  refuse('SESSION_NOT_FOUND', Session.create(SessionId('detached')))
  refuse('SESSION_NOT_LIVE', Session.create(SessionId('source')))
  for (const boundary of [-1, 0.5, 14, NaN]) refuse('INVALID_BOUNDARY', source, boundary, child)
  refuse('INVALID_BOUNDARY', ctx.sessions.create(), 0, child)
})

test('a fork of a session that nobody here fully knows is read-only where it inherits what is unknown', async () => {
  const { ctx } = await setup()
  const seed = [
    ...logOf(['command/run', { commandId: 'c' as never, name: 'x', source: { kind: 'user' } }]),
    { type: 'other/fact', seq: 1, time: 1, data: {} },
  ]
  const meta = { version: 0, id: SessionId('odd'), createdAt: 1 }
  const odd = ctx.sessions.prepare(meta.id, { seed: seed as never, meta, seedSource: 'persistence' })
  ctx.sessions.enter(odd)
  assert.equal(ctx.sessions.fork(odd, 0).readOnly, undefined)
  assert.match(ctx.sessions.fork(odd, 1).readOnly ?? '', /"other\/fact"/)
})

test('an open turn is not ended where not everything in it is known', async () => {
  const { ctx } = await setup()
  const seed = [...logOf(...drafts), { type: 'other/fact', seq: drafts.length, time: 1, data: {} }]
  const meta = { version: 0, id: SessionId('odd'), createdAt: 1 }
  const odd = ctx.sessions.prepare(meta.id, { seed: seed as never, meta, seedSource: 'persistence' })
  ctx.sessions.enter(odd)
  assert.throws(() => ctx.sessions.fork(odd, undefined, child, { openTurn: 'close' }), { code: 'READ_ONLY' })
  assert.equal(ctx.sessions.get(child), undefined)
})

test('a fork knows which of the events it begins with a plugin refused', () => {
  const types = new EventTypes()
  const validate = (): void => {
    throw new Error('not good')
  }
  types.add({ type: 'other/fact' as never, validate }, 'other')
  const events = [0, 1].map(seq => ({ type: 'other/fact', seq, time: 1, data: {} }))
  const header = { version: 0, id: SessionId('odd'), createdAt: 1 }
  const odd = Session.fromRestore(header.id, events as never, header, { types })
  const flagged = (length: number): number[] => odd.branch(child, length).flagged.map(({ seq }) => seq)
  assert.deepEqual([flagged(1), flagged(2)], [[0], [0, 1]])
})

test('a session that is read-only for another reason is gone on with in a fork', async () => {
  const { ctx } = await setup()
  const meta = { version: 0, id: SessionId('damaged'), createdAt: 1 }
  const seed = logOf(...drafts.slice(0, 7))
  const damaged = ctx.sessions.prepare(meta.id, {
    seed,
    meta,
    seedSource: 'persistence',
    readOnly: 'damaged',
  })
  ctx.sessions.enter(damaged)
  const fork = ctx.sessions.fork(damaged)
  assert.equal(fork.readOnly, undefined)
  fork.append('turn/start', { turn: 2 })
})
