import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageId, SessionId } from '@dsh/protocol'
import type { Message, SessionEvent, SurfaceOp } from '@dsh/protocol'
import fc from 'fast-check'
import { answerFact, given, logOf, resultFact, userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import {
  deriveEventMessage,
  foldSurface,
  isAppendSurfaceEvent,
  isReplacementSurfaceEvent,
  isSurfaceEvent,
  Session,
  SurfaceManager,
} from './index.ts'

function replace(start: number, end: number): SurfaceOp {
  return { op: 'replace', start, end }
}

const three: readonly Draft[] = [
  ['user/message', userFact('a')],
  ['user/message', userFact('b')],
  ['user/message', userFact('c')],
]

test('the model sees the messages of the surface in order, each the very one of the log', () => {
  const { session } = given(
    ['turn/start', { turn: 1 }],
    ['user/message', userFact('a')],
    ['assistant/message', answerFact('b', ['c'])],
    ['tool/result', resultFact('c', 'd')],
  ).when(() => {})
  assert.deepEqual(session.surface.nodes, [1, 2, 3])
  const messages = session.deriveMessages()
  assert.deepEqual(
    messages.map(message => message.role),
    ['user', 'assistant', 'user'],
  )
  assert.equal(messages[0], session.at(1)?.data)
  assert.deepEqual(session.messages, messages)
  assert.notEqual(session.deriveMessages(), messages)
})

test('a view of the messages stays as it is when the history grows', () => {
  const { session } = given(...three).when(() => {})
  const view = session.messages
  assert.equal(session.messages, view)
  session.append('todo/write', { todos: [] })
  assert.equal(session.messages, view)
  session.append('user/message', userFact('d'), { surfaceOp: 'append' })
  assert.equal(view.length, 3)
  assert.deepEqual(session.messages.slice(0, 3), view)
  assert.ok(Object.isFrozen(view))
})

test('a replacement stands where the replaced messages stood, which stay in the log', () => {
  const { session } = given(...three).when(log => {
    log.append('user/message', userFact('summary'), { surfaceOp: replace(0, 1), sourceEventSeqs: [0, 1] })
  })
  const { surface } = session
  assert.deepEqual(surface, { nodes: [3, 2], replaceGeneration: 1 })
  assert.deepEqual(
    session.messages.map(message => message.id),
    ['summary', 'c'],
  )
  assert.equal(session.at(0)?.type, 'user/message')
  session.append('user/message', userFact('all'), { surfaceOp: replace(3, 2), sourceEventSeqs: [2, 3] })
  assert.equal(session.surface, surface)
  assert.deepEqual(surface, { nodes: [4], replaceGeneration: 2 })
})

test('one message may be replaced alone, with more sources than it hides', () => {
  const { session } = given(...three).when(log => {
    log.append('user/message', userFact('B'), { surfaceOp: replace(1, 1), sourceEventSeqs: [0, 1] })
  })
  assert.deepEqual(session.surface.nodes, [0, 3, 2])
})

const misplaced: readonly (readonly [op: SurfaceOp, sources: number[] | undefined, message: RegExp])[] = [
  [replace(0, 1), [0], /leaves out 1, which is replaced/],
  [replace(0, 1), undefined, /leaves out 0, which is replaced/],
  [replace(7, 1), [1], /7 is not on the surface/],
  [replace(0, 3), [0], /3 is not on the surface/],
  [replace(2, 0), [0, 1, 2], /2 comes after 0 on the surface/],
]

for (const [op, sourceEventSeqs, message] of misplaced) {
  test(`a replacement is refused without a trace: ${message.source}`, () => {
    const { session } = given(...three).when(() => {})
    const intent = { surfaceOp: op, ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs }) }
    assert.throws(() => session.append('user/message', userFact('x'), intent), {
      code: 'INVALID_EVENT',
      message,
    })
    assert.deepEqual(session.surface, { nodes: [0, 1, 2], replaceGeneration: 0 })
    assert.equal(session.length, 3)
  })
}

const answered: readonly Draft[] = [
  ['assistant/message', answerFact('', ['c', 'd'])],
  ['tool/result', { ...resultFact('c', 'long'), meta: { lines: 3 } }],
  ['tool/result', resultFact('d', 'other')],
]

test('a result may be replaced by a shorter one', () => {
  const { session } = given(...answered).when(log => {
    log.append(
      'tool/result',
      { ...resultFact('c', 'short'), meta: { lines: 3 } },
      { surfaceOp: replace(1, 1), sourceEventSeqs: [1] },
    )
  })
  assert.deepEqual(session.surface.nodes, [0, 3, 2])
})

test('a result that replaces another differs in its content alone', () => {
  const same = { ...resultFact('c', 'short'), meta: { lines: 3 } }
  const wrong = [
    { ...same, meta: { lines: 4 } },
    resultFact('c', 'short'),
    { ...same, step: 2 },
    { ...same, message: { ...same.message, id: MessageId('other') } },
    { ...resultFact('c', 'short', { error: { name: 'E', code: 'E' } }), meta: { lines: 3 } },
    { ...resultFact('d', 'short'), meta: { lines: 3 } },
  ]
  for (const data of wrong) {
    given(...answered)
      .when(log => log.append('tool/result', data, { surfaceOp: replace(1, 1), sourceEventSeqs: [1] }))
      .throws({ code: 'INVALID_EVENT', message: /differs in more than its content/ })
  }
})

test('a result replaces exactly one result and nothing else', () => {
  for (const [start, end] of [
    [1, 2],
    [0, 0],
  ] as const) {
    given(...answered)
      .when(log =>
        log.append('tool/result', resultFact('c', 'x'), {
          surfaceOp: replace(start, end),
          sourceEventSeqs: [0, 1, 2],
        }),
      )
      .throws({ code: 'INVALID_EVENT', message: /replaces exactly one other "tool\/result"/ })
  }
})

test('an answer without content is on the surface and adds no message', () => {
  const { session } = given(['user/message', userFact('a')], ['assistant/message', answerFact('')]).when(
    () => {},
  )
  assert.deepEqual(session.surface.nodes, [0, 1])
  assert.deepEqual(
    session.messages.map(message => message.id),
    ['a'],
  )
  session.append('user/message', userFact('x'), { surfaceOp: replace(1, 1), sourceEventSeqs: [1] })
  assert.deepEqual(
    session.messages.map(message => message.id),
    ['a', 'x'],
  )
})

test('the transcript of a person is what was appended, not what the model is shown', () => {
  const events = logOf(
    ...three,
    ['user/message', userFact('s'), { surfaceOp: replace(0, 2), sourceEventSeqs: [0, 1, 2] }],
    ['todo/write', { todos: [] }],
  )
  assert.deepEqual(events.map(isSurfaceEvent), [true, true, true, true, false])
  assert.deepEqual(events.map(isAppendSurfaceEvent), [true, true, true, false, false])
  assert.deepEqual(events.map(isReplacementSurfaceEvent), [false, false, false, true, false])
  assert.deepEqual(
    events.map(event => deriveEventMessage(event)?.id),
    ['a', 'b', 'c', 's', undefined],
  )
})

test('a whole fold tells what each replacement hid', () => {
  const events = logOf(
    ...three,
    ['user/message', userFact('s'), { surfaceOp: replace(0, 1), sourceEventSeqs: [0, 1] }],
    ['user/message', userFact('t'), { surfaceOp: replace(3, 2), sourceEventSeqs: [2, 3] }],
  )
  assert.deepEqual(foldSurface(events), {
    nodes: [4],
    replacements: [
      { seq: 3, start: 0, end: 1, shadowedSeqs: [0, 1] },
      { seq: 4, start: 3, end: 2, shadowedSeqs: [3, 2] },
    ],
  })
})

test('a window of a log is folded by itself, and a replacement that reaches out of it fails', () => {
  const events = logOf(
    ...three,
    ['user/message', userFact('s'), { surfaceOp: replace(1, 2), sourceEventSeqs: [1, 2] }],
    ['user/message', userFact('t'), { surfaceOp: replace(0, 3), sourceEventSeqs: [0, 3] }],
  )
  const window = new SurfaceManager(events.slice(1, 4), 1)
  assert.deepEqual(window.surface.nodes, [3])
  assert.throws(() => window.append(events[4] as SessionEvent), { message: /0 is not on the surface/ })
  assert.throws(() => new SurfaceManager([events[0], events[2]] as SessionEvent[]), {
    message: /it follows event 0/,
  })
})

/** The rule said in the plainest way: what a session must agree with. */
function project(events: readonly SessionEvent[]): { nodes: number[]; messages: Message[] } {
  const nodes: number[] = []
  for (const { seq, surfaceOp } of events) {
    if (surfaceOp === 'append') nodes.push(seq)
    else if (surfaceOp !== undefined) {
      const from = nodes.indexOf(surfaceOp.start)
      nodes.splice(from, nodes.indexOf(surfaceOp.end) - from + 1, seq)
    }
  }
  const messages = nodes.map(seq => deriveEventMessage(events[seq] as SessionEvent))
  return { nodes, messages: messages.filter(message => message !== null) }
}

test('after any appends and replacements, the running surface is the one folded from the whole log', () => {
  const step = fc.record({
    kind: fc.constantFrom('user', 'answer', 'silent', 'replace', 'other'),
    from: fc.nat(),
    span: fc.nat(4),
    read: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), steps => {
      const session = Session.create(SessionId('s'))
      for (const [index, { kind, from, span, read }] of steps.entries()) {
        const { nodes } = session.surface
        const first = nodes.length === 0 ? 0 : from % nodes.length
        const hidden = nodes.slice(first, first + span + 1)
        const [start] = hidden
        const end = hidden.at(-1)
        if (kind === 'answer' || kind === 'silent') {
          session.append('assistant/message', answerFact(kind === 'silent' ? '' : 'a'), {
            surfaceOp: 'append',
          })
        } else if (kind === 'replace' && start !== undefined && end !== undefined) {
          const intent = { surfaceOp: replace(start, end), sourceEventSeqs: hidden }
          session.append('user/message', userFact(`r${index}`), intent)
        } else if (kind === 'other') session.append('todo/write', { todos: [] })
        else session.append('user/message', userFact(`u${index}`), { surfaceOp: 'append' })
        if (read) assert.deepEqual(session.messages, project(session.events).messages)
      }
      const expected = project(session.events)
      assert.deepEqual(session.surface.nodes, expected.nodes)
      assert.deepEqual(foldSurface(session.events).nodes, expected.nodes)
      assert.deepEqual(session.deriveMessages(), expected.messages)
      const again = Session.create(SessionId('again'), JSON.parse(JSON.stringify(session.events)))
      assert.deepEqual(again.surface.nodes, expected.nodes)
      assert.deepEqual(again.messages, expected.messages)
      const branch = session.branch(SessionId('branch'), session.length)
      assert.deepEqual(branch.surface.nodes, expected.nodes)
      assert.deepEqual(branch.messages, expected.messages)
    }),
    { numRuns: 100 },
  )
})
