import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { InboxTarget, SessionEvent, SessionEventMap, StreamChunk } from '@dsh/protocol'
import fc from 'fast-check'
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
import { lintLog } from '../invariants/index.ts'
import { checkProjection } from '../llm/index.ts'
import {
  deriveEventMessage,
  foldSurface,
  interruptedTurnClosers,
  Session,
  toolNotStarted,
  toolOutcomeUnknown,
} from './index.ts'

const inTurn: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
]
const asked: readonly Draft[] = [
  ...inTurn,
  ['user/message', userFact('hi')],
  ['request/header', headerFact()],
]
const calling: readonly Draft[] = [...asked, ['assistant/message', answerFact('ok', ['a', 'b'])]]

function chunk(chunk: StreamChunk): Draft {
  return ['assistant/chunk', { turn: 1, step: 1, chunk }]
}

function splice(target: InboxTarget, rest: Partial<SessionEventMap['agent/inbox/spliced']>): Draft {
  return ['agent/inbox/spliced', { target, start: 0, inserted: [], ...rest }]
}

/** What closes the log, in short: types, and of a result its code and sources. */
function closing(drafts: readonly Draft[], options = {}): unknown[] {
  return interruptedTurnClosers(logOf(...drafts), options).map(event => {
    if (event.type !== 'tool/result') return event.type
    const { error, message } = event.data
    return [message.source.callId, error?.code, ...(event.sourceEventSeqs ?? [])]
  })
}

test('a log without an open turn needs nothing', () => {
  assert.deepEqual(closing([]), [])
  assert.deepEqual(
    closing([
      ...inTurn,
      ['step/end', { turn: 1, step: 1 }],
      ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
    ]),
    [],
  )
  assert.deepEqual(closing([['todo/write', { todos: [] }]]), [])
})

test('a turn that broke off is ended, with its step where one is open', () => {
  assert.deepEqual(closing([['turn/start', { turn: 1 }]]), ['turn/end'])
  assert.deepEqual(closing(inTurn), ['step/end', 'turn/end'])
  const closers = interruptedTurnClosers(logOf(...inTurn))
  assert.deepEqual(closers, [
    { type: 'step/end', seq: 2, time: 1_700_000_000_001, data: { turn: 1, step: 1 } },
    {
      type: 'turn/end',
      seq: 3,
      time: 1_700_000_000_001,
      data: { turn: 1, reason: { kind: 'interrupted' } },
    },
  ])
})

test('each call without a result gets one, in the order of the answer, that tells whether it may have run', () => {
  assert.deepEqual(closing([...calling, ['tool/call', callFact('b')]]), [
    ['a', 'TOOL_NOT_STARTED'],
    ['b', 'TOOL_OUTCOME_UNKNOWN', 5],
    'step/end',
    'turn/end',
  ])
  assert.deepEqual(
    closing([...calling, ['tool/call', callFact('a')], ['tool/result', resultFact('a', 'x')]]),
    [['b', 'TOOL_NOT_STARTED'], 'step/end', 'turn/end'],
  )
})

test('the result of a cut off call is an ordinary one, said in fixed words', () => {
  const [unknown, missing] = interruptedTurnClosers(logOf(...calling, ['tool/call', callFact('a')]))
  const callId = CallId('a')
  assert.deepEqual(unknown, {
    type: 'tool/result',
    seq: 6,
    time: 1_700_000_000_005,
    data: {
      turn: 1,
      step: 1,
      message: {
        id: 'interrupted-tool-result-a-6',
        role: 'user',
        content: [
          {
            type: 'tool-result',
            toolCallId: callId,
            content: [{ type: 'text', text: toolOutcomeUnknown.text }],
            isError: true,
          },
        ],
        source: { kind: 'tool', callId },
      },
      error: { name: 'ToolOutcomeUnknownError', code: 'TOOL_OUTCOME_UNKNOWN' },
    },
    surfaceOp: 'append',
    sourceEventSeqs: [5],
  })
  assert.ok(missing?.type === 'tool/result' && !('sourceEventSeqs' in missing))
  assert.deepEqual(missing.data.error, { name: 'ToolNotStartedError', code: 'TOOL_NOT_STARTED' })
  assert.equal(
    toolNotStarted.text,
    'Not started: the turn was cut off before this call ran, so it changed nothing. Call the tool again if the result is still needed.',
  )
  assert.equal(
    toolOutcomeUnknown.text,
    'Cut off while running: whether this call took effect is unknown. Run it again only if it just reads or is safe to repeat; otherwise look at what it did first, or ask.',
  )
})

test('where starts are marked, a call without a mark never ran', () => {
  const both: readonly Draft[] = [...calling, ['tool/call', callFact('a')], ['tool/call', callFact('b')]]
  const marked: Draft = ['tool/start', { turn: 1, step: 1, callId: CallId('a') }]
  const expected = [['a', 'TOOL_OUTCOME_UNKNOWN', 7], ['b', 'TOOL_NOT_STARTED', 6], 'step/end', 'turn/end']
  assert.deepEqual(closing([...both, marked]), expected)
  assert.deepEqual(closing([...both, marked], { toolStart: true }), expected)
  assert.deepEqual(closing(both, { toolStart: true }), [
    ['a', 'TOOL_NOT_STARTED', 5],
    ['b', 'TOOL_NOT_STARTED', 6],
    'step/end',
    'turn/end',
  ])
})

test('calls of an earlier step, and calls that no answer made, are left alone', () => {
  assert.deepEqual(
    closing([
      ...calling,
      ['step/end', { turn: 1, step: 1 }],
      ['step/start', { turn: 1, step: 2 }],
      ['tool/call', callFact('x', { step: 2 })],
    ]),
    ['step/end', 'turn/end'],
  )
})

test('what could be seen of an answer that was cut off becomes a message', () => {
  const events = logOf(
    ...asked,
    chunk({ type: 'reasoning-delta', index: 0, text: 'think' }),
    chunk({ type: 'text-delta', index: 1, text: 'Hel' }),
    chunk({ type: 'text-delta', index: 1, text: 'lo' }),
    chunk({ type: 'tool-call-delta', index: 2, id: CallId('a'), name: 'tool', argumentsDelta: '{' }),
  )
  const [message, ...rest] = interruptedTurnClosers(events)
  assert.deepEqual(message, {
    type: 'assistant/message',
    seq: 8,
    time: 1_700_000_000_007,
    data: {
      turn: 1,
      step: 1,
      message: {
        id: 'interrupted-message-8',
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'think' },
          { type: 'text', text: 'Hello' },
        ],
        source: { kind: 'model', provider: 'mock', model: 'mock' },
      },
      interrupted: true,
    },
    surfaceOp: 'append',
    sourceEventSeqs: [4, 5, 6, 7],
  })
  assert.deepEqual(
    rest.map(event => event.type),
    ['step/end', 'turn/end'],
  )
})

test('an attempt that failed, or showed nothing, leaves no message', () => {
  const failure = { message: 'no', code: 'SERVER' }
  const failed = chunk({ type: 'finish', reason: { kind: 'error', failure } })
  const aborted = chunk({ type: 'finish', reason: { kind: 'aborted', failure } })
  const text = chunk({ type: 'text-delta', index: 0, text: 'Hel' })
  const nothing = ['step/end', 'turn/end']
  assert.deepEqual(closing([...asked, text, failed]), nothing)
  assert.deepEqual(closing([...asked, text, aborted]), nothing)
  assert.deepEqual(closing([...asked, chunk({ type: 'text-delta', index: 0, text: ' \n' })]), nothing)
  assert.deepEqual(closing([...asked, chunk({ type: 'block-start', index: 0, blockType: 'text' })]), nothing)
  const [message] = interruptedTurnClosers(logOf(...asked, text, failed, text))
  assert.deepEqual(message?.sourceEventSeqs, [6])
  const ended = chunk({ type: 'finish', reason: { kind: 'stop' } })
  assert.equal(closing([...asked, text, ended])[0], 'assistant/message')
})

test('messages that were claimed and never reached the model go back to the front of their lists', () => {
  const queued: readonly Draft[] = [
    splice('next-turn', { inserted: [userFact('a'), userFact('b')] }),
    splice('next-step', { inserted: [userFact('c'), userFact('d')] }),
    ['turn/start', { turn: 1 }],
    splice('next-step', { removedCount: 2 }),
    splice('next-turn', { removedCount: 1 }),
  ]
  const back = (...more: readonly Draft[]): unknown[] =>
    interruptedTurnClosers(logOf(...queued, ...more)).flatMap(event =>
      event.type === 'agent/inbox/spliced'
        ? [[event.data.target, event.data.start, event.data.inserted.map(message => message.id)]]
        : [],
    )
  const step: Draft = ['step/start', { turn: 1, step: 1 }]
  const all = [
    ['next-step', 0, ['c', 'd']],
    ['next-turn', 0, ['a']],
  ]
  assert.deepEqual(back(), all)
  assert.deepEqual(back(step), all)
  assert.deepEqual(back(step, ['user/message', userFact('c')]), [
    ['next-step', 0, ['d']],
    ['next-turn', 0, ['a']],
  ])
  assert.deepEqual(back(step, ['user/message', userFact('c')], ['request/header', headerFact()]), [])
  assert.deepEqual(back(step, ['assistant/chunk', textFact('x')]), [])
  assert.deepEqual(back(splice('next-turn', { removedCount: 1, outcome: 'canceled' })), all)
  assert.deepEqual(closing([...queued, step]), [
    'step/end',
    'agent/inbox/spliced',
    'agent/inbox/spliced',
    'turn/end',
  ])
})

test('a fork gives back nothing of the inbox it inherited', () => {
  const events = logOf(
    splice('next-turn', { inserted: [userFact('old')] }),
    ['session/end-seed', { inherited: true }],
    splice('next-turn', { inserted: [userFact('new')] }),
    ['turn/start', { turn: 1 }],
    splice('next-turn', { removedCount: 1 }),
  )
  const marked = interruptedTurnClosers(events)
  assert.deepEqual(marked[0]?.type === 'agent/inbox/spliced' && marked[0].data.inserted, [userFact('new')])
  const unmarked = events.map(event =>
    event.type === 'session/end-seed' ? { ...event, data: {} } : event,
  ) as SessionEvent[]
  assert.deepEqual(interruptedTurnClosers(unmarked, { seedLength: 1 }), marked)
})

function claim(turn: number, message: ReturnType<typeof userFact>): Draft[] {
  return [
    splice('next-turn', { inserted: [message] }),
    ['turn/start', { turn }],
    splice('next-turn', { removedCount: 1 }),
  ]
}

function ofStep(
  turn: number,
  step: number,
  kind: 'text' | 'calls' | 'retry' | 'silent',
  marks: boolean,
): Draft[] {
  const place = { turn, step }
  const stream = (...chunks: StreamChunk[]): Draft[] =>
    chunks.map(each => ['assistant/chunk', { ...place, chunk: each }])
  const text = (delta: string): StreamChunk => ({ type: 'text-delta', index: 0, text: delta })
  const failed: StreamChunk = {
    type: 'finish',
    reason: { kind: 'error', failure: { message: 'no', code: 'SERVER' } },
  }
  const calls = kind === 'calls' ? [`${turn}.${step}.a`, `${turn}.${step}.b`] : []
  const drafts: Draft[] = kind === 'retry' ? stream(text('lost'), failed) : []
  if (kind !== 'silent')
    drafts.push(...stream(text('Hel'), text('lo'), { type: 'finish', reason: { kind: 'stop' } }))
  drafts.push(['assistant/message', answerFact(kind === 'silent' ? '' : 'Hello', calls, place)])
  for (const id of calls) {
    drafts.push(['tool/call', callFact(id, place)])
    if (marks) drafts.push(['tool/start', { ...place, callId: CallId(id) }])
  }
  for (const id of calls) drafts.push(['tool/result', resultFact(id, 'done', place)])
  drafts.push(['step/end', place])
  return drafts
}

const runs = fc.record({
  marks: fc.boolean(),
  turns: fc.array(fc.array(fc.constantFrom('text', 'calls', 'retry', 'silent'), { maxLength: 3 }), {
    minLength: 1,
    maxLength: 3,
  }),
})

function runLog({
  marks,
  turns,
}: {
  marks: boolean
  turns: ('text' | 'calls' | 'retry' | 'silent')[][]
}): SessionEvent[] {
  const drafts: Draft[] = []
  for (const [index, steps] of turns.entries()) {
    const turn = index + 1
    const prompt = userFact(`prompt ${turn}`)
    drafts.push(...claim(turn, prompt))
    for (const [at, kind] of steps.entries()) {
      drafts.push(['step/start', { turn, step: at + 1 }])
      if (at === 0) drafts.push(['user/message', prompt])
      if (turn === 1 && at === 0) drafts.push(['request/header', headerFact()])
      drafts.push(...ofStep(turn, at + 1, kind, marks))
    }
    drafts.push(['turn/end', { turn, reason: { kind: 'completed' } }])
  }
  return logOf(...drafts)
}

/** Prompts that are not exactly one of: waiting, in the history, taken by a turn that ended by itself. */
function lost(events: readonly SessionEvent[]): string[] {
  const places = new Map<string, string[]>()
  const taken = new Set<string>()
  for (const event of events) {
    if (event.type === 'user/message') places.set(event.data.id, ['history'])
    const isOver = event.type === 'turn/end' && event.data.reason.kind !== 'interrupted'
    const over = isOver ? [...taken].filter(id => places.get(id)?.length === 0) : []
    for (const id of over) places.set(id, ['ended'])
    if (event.type !== 'agent/inbox/spliced') continue
    for (const [id, at] of places) {
      if (event.data.removedCount === undefined || !at.includes('inbox')) continue
      places.set(id, [])
      taken.add(id)
    }
    for (const { id } of event.data.inserted) places.set(id, [...(places.get(id) ?? []), 'inbox'])
  }
  return [...places].filter(([, at]) => at.length !== 1).map(([id, at]) => `${id}: ${at.join()}`)
}

test('cut anywhere, a run is closed into a log that every rule and every provider takes', () => {
  fc.assert(
    fc.property(runs, run => {
      const events = runLog(run)
      assert.deepEqual(lintLog(events), [])
      for (let length = 0; length <= events.length; length++) {
        const prefix = events.slice(0, length)
        const closers = interruptedTurnClosers(prefix, { toolStart: run.marks })
        const whole = [...prefix, ...closers]
        assert.deepEqual(lintLog(whole), [])
        const messages = foldSurface(whole).nodes.map(seq => deriveEventMessage(whole[seq] as SessionEvent))
        assert.deepEqual(checkProjection(messages.filter(message => message !== null)), [])
        assert.deepEqual(interruptedTurnClosers(whole, { toolStart: run.marks }), [])
        assert.deepEqual(interruptedTurnClosers(prefix, { toolStart: run.marks }), closers)
        assert.deepEqual(lost(whole), [])
        const stored = JSON.parse(JSON.stringify(whole)) as SessionEvent[]
        const header = { version: 0, id: SessionId('s'), createdAt: 1 }
        const session = Session.fromRestore(header.id, stored, header)
        assert.equal(session.readOnly, undefined)
        assert.equal(session.messages.length, messages.filter(message => message !== null).length)
      }
    }),
    { numRuns: 25 },
  )
})
