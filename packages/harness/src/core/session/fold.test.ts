import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { answerFact, callFact, given, resultFact, textFact, userFact } from '../../testing/given.ts'
import { pendingCalls, Session, SessionStore, turnCursor } from './index.ts'
import type { FoldDefinition } from './index.ts'

/** Turns by number, and how often it was asked. */
function turnsFold(): FoldDefinition<readonly number[], 'turn/start'> & { readonly calls: number[] } {
  const calls: number[] = []
  return {
    name: 'turns',
    types: ['turn/start'],
    calls,
    init: () => [],
    apply(state, event) {
      calls.push(event.seq)
      return [...state, event.data.turn]
    },
  }
}

test('a fold sees the events of its types once each, those before it was asked for included', () => {
  const session = Session.create(SessionId('s'))
  session.append('turn/start', { turn: 1 })
  session.append('step/start', { turn: 1, step: 1 })
  const turns = turnsFold()
  assert.deepEqual(session.fold(turns), [1])
  session.append('todo/write', { todos: [] })
  session.append('turn/start', { turn: 2 })
  assert.deepEqual(session.fold(turns), [1, 2])
  assert.deepEqual(session.fold(turns), [1, 2])
  assert.deepEqual(turns.calls, [0, 3])
})

test('the value before an event is kept for those who hear of it, and found again however old', () => {
  const session = Session.create(SessionId('s'))
  const turns = turnsFold()
  session.fold(turns)
  for (let turn = 1; turn <= 40; turn++) session.append('turn/start', { turn })
  assert.equal(turns.calls.length, 40)
  assert.deepEqual(session.fold(turns, { before: 39 }).length, 39)
  assert.equal(turns.calls.length, 40)
  assert.deepEqual(session.fold(turns, { before: 3 }), [1, 2, 3])
  assert.deepEqual(session.fold(turns, { before: 0 }), [])
  assert.deepEqual(session.fold(turns, { before: 100 }).length, 40)
})

test('a listener finds the fold after its event, and before it where it asks', async () => {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const session = ctx.sessions.create()
  const seen: unknown[] = []
  ctx.on('session/event', (_session, event) => {
    if (event.type === 'turn/start') session.append('step/start', { turn: 1, step: 1 })
  })
  ctx.on('session/event', (_session, event) => {
    seen.push([
      event.type,
      session.fold(turnCursor, { before: event.seq }),
      session.fold(turnCursor, { before: event.seq + 1 }),
    ])
  })
  session.append('turn/start', { turn: 1 })
  const none = { openTurn: undefined, openStep: undefined, lastTurn: 0 }
  const inTurn = { openTurn: 1, openStep: undefined, lastTurn: 1 }
  assert.deepEqual(seen, [
    ['turn/start', none, inTurn],
    ['step/start', inTurn, { ...inTurn, openStep: 1 }],
  ])
})

test('a fold begins with the facts of the header', () => {
  const header: SessionHeader = { version: 0, id: SessionId('s'), createdAt: 1, seedLength: 5 }
  const fold = {
    name: 'seed length',
    types: [] as const,
    init: (from: SessionHeader) => from.seedLength,
    apply: (state: number | undefined) => state,
  }
  assert.equal(Session.create(header.id, undefined, header).fold(fold), 5)
})

test('a fold that cannot go on says so to its readers and to nobody else', () => {
  const session = Session.create(SessionId('s'))
  const fold: FoldDefinition<number, 'turn/start'> = {
    name: 'strict',
    types: ['turn/start'],
    init: () => 0,
    apply(state, event) {
      if (event.data.turn !== state + 1) throw new RangeError(`turn ${event.data.turn} at seq ${event.seq}`)
      return event.data.turn
    },
  }
  session.append('turn/start', { turn: 1 })
  assert.equal(session.fold(fold), 1)
  session.append('turn/start', { turn: 5 })
  session.append('turn/start', { turn: 2 })
  assert.throws(() => session.fold(fold), { message: 'turn 5 at seq 1' })
  assert.equal(session.fold(fold, { before: 1 }), 1)
  assert.equal(session.fold(turnCursor).lastTurn, 2)
})

test('folds of chunks see those that are kept packed', () => {
  const session = Session.create(SessionId('s'))
  const text: FoldDefinition<string, 'assistant/chunk'> = {
    name: 'text',
    types: ['assistant/chunk'],
    init: () => '',
    apply: (state, { data }) => (data.chunk.type === 'text-delta' ? state + data.chunk.text : state),
  }
  for (const letter of 'abc') session.appendChunk(1, 1, { type: 'text-delta', index: 0, text: letter })
  assert.equal(session.fold(text), 'abc')
  session.appendChunk(1, 1, { type: 'text-delta', index: 0, text: 'd' })
  assert.equal(session.fold(text), 'abcd')
  assert.equal(session.fold(text, { before: 2 }), 'ab')
})

test('the last event of a type and all events since a seq are at hand', () => {
  const { session } = given(['turn/start', { turn: 1 }], ['assistant/chunk', textFact('a')]).when(log => {
    log.appendChunk(1, 1, { type: 'text-delta', index: 0, text: 'b' })
  })
  assert.equal(session.last('turn/end'), undefined)
  assert.equal(session.last('turn/start'), session.at(0))
  assert.deepEqual(session.last('assistant/chunk')?.data, textFact('b'))
  assert.deepEqual(
    [...session.since(1)].map(event => event.seq),
    [1, 2],
  )
  const since = session.since(0)
  session.append('todo/write', { todos: [] })
  assert.equal([...since].length, 3)
  assert.deepEqual([...session.since(9)], [])
})

test('the turn cursor follows turns and steps', () => {
  const session = Session.create(SessionId('s'))
  const at = (): unknown => session.fold(turnCursor)
  session.append('turn/start', { turn: 7 })
  session.append('step/start', { turn: 7, step: 1 })
  assert.deepEqual(at(), { openTurn: 7, openStep: 1, lastTurn: 7 })
  session.append('step/end', { turn: 7, step: 1 })
  assert.deepEqual(at(), { openTurn: 7, openStep: undefined, lastTurn: 7 })
  session.append('turn/end', { turn: 7, reason: { kind: 'completed' } })
  assert.deepEqual(at(), { openTurn: undefined, openStep: undefined, lastTurn: 7 })
})

test('calls are pending from the answer that makes them to their results, in the order of the answer', () => {
  const { session } = given(
    ['user/message', userFact('hi')],
    ['assistant/message', answerFact('', ['a', 'b', 'a'])],
    ['tool/call', callFact('b')],
    ['tool/call', callFact('a')],
    ['tool/start', { turn: 1, step: 1, callId: callFact('a').callId }],
    ['tool/call', callFact('stray')],
  ).when(() => {})
  const [a, b] = [callFact('a').callId, callFact('b').callId]
  assert.deepEqual(session.fold(pendingCalls), [
    { callId: a, name: 'tool', callSeq: 3, startSeq: 4 },
    { callId: b, name: 'tool', callSeq: 2 },
    { callId: a, name: 'tool' },
  ])
  session.append('tool/result', resultFact('a', 'x'), { surfaceOp: 'append' })
  assert.deepEqual(
    session.fold(pendingCalls).map(call => call.callId),
    [b, a],
  )
  const shorter = { surfaceOp: { op: 'replace', start: 6, end: 6 }, sourceEventSeqs: [6] } as const
  session.append('tool/result', resultFact('a', ''), shorter)
  assert.equal(session.fold(pendingCalls).length, 2)
  session.append('step/end', { turn: 1, step: 1 })
  assert.deepEqual(session.fold(pendingCalls), [])
})

test('a chunk reads the same from the log as it was told of, whatever block it belongs to', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1000 })
  const session = Session.create(SessionId('s'))
  const told: SessionEvent[] = []
  const chunk = (given: Parameters<Session['appendChunk']>[2], step = 1): void => {
    told.push(session.appendChunk(1, step, given))
    t.mock.timers.setTime(1000 + ((told.length * 7) % 11) - 5)
  }
  const callId = callFact('c').callId
  chunk({ type: 'block-start', index: 0, blockType: 'text' })
  for (let index = 0; index < 200; index++) chunk({ type: 'text-delta', index: 0, text: `t${index}🙂` })
  chunk({ type: 'text-delta', index: 0, text: '\ud83d' })
  chunk({ type: 'text-delta', index: 0, text: '\ude42' })
  chunk({ type: 'text-delta', index: 1, text: '' })
  chunk({ type: 'reasoning-delta', index: 1, text: 'r' })
  session.append('todo/write', { todos: [] })
  told.push(session.at(session.length - 1) as SessionEvent)
  chunk({ type: 'reasoning-delta', index: 1, text: 's' })
  chunk({ type: 'reasoning-delta', index: 1, text: 't' }, 2)
  chunk({ type: 'tool-call-delta', index: 2, id: callId, name: 'tool', argumentsDelta: '{' })
  chunk({ type: 'tool-call-delta', index: 2, id: callId, argumentsDelta: '"a"' })
  chunk({ type: 'tool-call-delta', index: 2, id: callId, argumentsDelta: ':1}' })
  chunk({
    type: 'block-end',
    index: 2,
    block: { type: 'tool-call', id: callId, name: 'tool', arguments: '{"a":1}' },
  })
  chunk({ type: 'usage', usage: { inputTokens: 1, outputTokens: 2 } })
  chunk({ type: 'finish', reason: { kind: 'tool-calls' } })
  assert.deepEqual(session.events, told)
  assert.deepEqual([...session.since(0)], told)
  assert.ok(session.events.every(event => Object.isFrozen(event) && Object.isFrozen(event.data)))
  const branch = session.branch(SessionId('b'), 100)
  session.appendChunk(1, 2, { type: 'text-delta', index: 0, text: 'later' })
  assert.deepEqual(branch.events.slice(0, 100), told.slice(0, 100))
})

test('a chunk that is none is refused, and fields that no chunk has are left out', () => {
  const session = Session.create(SessionId('s'))
  assert.throws(() => session.appendChunk(1, 1, { type: 'noise' } as never), { code: 'MALFORMED_RESPONSE' })
  assert.throws(() => session.appendChunk(0, 1, { type: 'text-delta', index: 0, text: '' }), {
    code: 'INVALID_EVENT',
  })
  const chunk = { type: 'text-delta', index: 0, text: 'a', extra: () => 1 } as const
  assert.deepEqual(session.appendChunk(1, 1, chunk).data, textFact('a'))
  assert.equal(session.length, 1)
})
