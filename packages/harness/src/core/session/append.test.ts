import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, MessageId, SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionEventType } from '@dsh/protocol'
import { adopt, Context } from '../../kernel/index.ts'
import { answerFact, callFact, given, resultFact, userFact } from '../../testing/given.ts'
import { Session, SessionStore } from './index.ts'
import type { SessionError } from './index.ts'

async function setup(): Promise<{ ctx: Context; session: Session; heard: string[]; errors: unknown[] }> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const errors: unknown[] = []
  ctx.on('internal/error', error => {
    errors.push(error)
  })
  return { ctx, session: ctx.sessions.create(SessionId('s')), heard: [], errors }
}

type AnyAppend = (type: string, data: unknown, intent?: unknown) => SessionEvent
/** `append` as a caller without types uses it. */
function untyped(session: Session): AnyAppend {
  return session.append.bind(session) as unknown as AnyAppend
}

test('an accepted event stands at its seq, and the log is one longer', () => {
  const session = Session.create(SessionId('s'))
  for (let turn = 1; turn <= 3; turn++) {
    const before = session.length
    const event = session.append('turn/start', { turn })
    assert.equal(event.seq, before)
    assert.equal(session.length, before + 1)
    assert.equal(session.at(before), event)
    assert.equal(session.events[before], event)
  }
  assert.equal(session.seq, 3)
  assert.equal(session.at(3), undefined)
  assert.equal(session.at(-1), undefined)
})

test('an event carries its type, seq, time and data, and nothing that does not apply', t => {
  t.mock.timers.enable({ apis: ['Date'], now: 5000 })
  const session = Session.create(SessionId('s'))
  assert.deepEqual(session.append('turn/start', { turn: 1 }), {
    type: 'turn/start',
    seq: 0,
    time: 5000,
    data: { turn: 1 },
  })
  assert.deepEqual(session.append('user/message', userFact('hi'), { surfaceOp: 'append' }), {
    type: 'user/message',
    seq: 1,
    time: 5000,
    data: userFact('hi'),
    surfaceOp: 'append',
  })
  const result = session.append('tool/result', resultFact('c', 'ok'), {
    surfaceOp: 'append',
    sourceEventSeqs: [0],
  })
  assert.deepEqual(Object.keys(result), ['type', 'seq', 'time', 'data', 'surfaceOp', 'sourceEventSeqs'])
})

for (const [name, value] of [
  ['undefined', undefined],
  ['a function', () => 1],
  ['a bigint', 1n],
  ['minus zero', -0],
  ['NaN', NaN],
  ['a sparse list', Object.assign([], { length: 1 })],
  ['a date', new Date()],
  ['a map', new Map()],
  ['a symbol key', { [Symbol('x')]: 1 }],
  ['a hidden key', Object.defineProperty({}, 'x', { value: 1 })],
] as const) {
  test(`data with ${name} is refused by type and path, without a trace`, () => {
    const data = { ...userFact('hi'), extra: value }
    given(['turn/start', { turn: 1 }])
      .when(session => session.append('user/message', data, { surfaceOp: 'append' }))
      .throws({ name: 'TypeError', message: /^event "user\/message": data\.extra is / })
  })
}

test('a getter is read once, and the log keeps what it gave', () => {
  let reads = 0
  const data = Object.defineProperty({}, 'turn', { enumerable: true, get: () => ++reads }) as { turn: number }
  const { session } = given().when(log => log.append('turn/start', data))
  assert.deepEqual(session.at(0)?.data, { turn: 1 })
  assert.equal(reads, 1)
})

test('the place on the surface is read once too', () => {
  const reads: string[] = []
  const read = <T>(key: string, value: T): T => {
    reads.push(key)
    return value
  }
  const intent = {
    get surfaceOp() {
      return read('surfaceOp', {
        get op() {
          return read('op', 'replace')
        },
        get start() {
          return read('start', 0)
        },
        get end() {
          return read('end', 0)
        },
      })
    },
    get sourceEventSeqs() {
      return read('sourceEventSeqs', [0])
    },
  }
  const { session } = given(['user/message', userFact('a')]).when(log =>
    untyped(log)('user/message', userFact('b'), intent),
  )
  assert.deepEqual(session.surface.nodes, [1])
  assert.deepEqual(reads.sort(), ['end', 'op', 'sourceEventSeqs', 'start', 'surfaceOp'])
})

test('nothing a caller changes afterwards reaches the log, and nothing in the log can be changed', () => {
  const data = { todos: [{ content: 'a', status: 'pending' as const }] }
  const session = Session.create(SessionId('s'))
  const event = session.append('todo/write', data)
  data.todos.push({ content: 'b', status: 'pending' })
  assert.deepEqual(event.data.todos, [{ content: 'a', status: 'pending' }])
  session.append('user/message', userFact('hi'), { surfaceOp: 'append' })
  const [message] = session.deriveMessages()
  for (const target of [
    event,
    event.data,
    event.data.todos,
    event.data.todos[0],
    message,
    message?.content,
  ]) {
    assert.throws(() => Object.assign(target as object, { changed: true }), TypeError)
  }
})

test('a message that was adopted before is kept as the same object everywhere', () => {
  const session = Session.create(SessionId('s'))
  const message = adopt(userFact('hi'))
  session.append('agent/inbox/spliced', { target: 'next-turn', start: 0, inserted: [message] })
  session.append('user/message', message, { surfaceOp: 'append' })
  assert.equal(session.messages[0], message)
  assert.equal(session.last('agent/inbox/spliced')?.data.inserted[0], message)
})

test('a list of events that was handed out never grows, and is the same until the next event', () => {
  const session = Session.create(SessionId('s'))
  session.append('turn/start', { turn: 1 })
  const first = session.events
  assert.equal(session.events, first)
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  assert.equal(first.length, 1)
  assert.notEqual(session.events, first)
  assert.equal(session.events.length, 2)
  assert.throws(() => (first as SessionEvent[]).pop(), TypeError)
})

test('a listener that throws or rejects changes nothing for the writer and for the others', async () => {
  const { ctx, session, heard, errors } = await setup()
  const first = new Error('first')
  const second = new Error('second')
  ctx.on('session/event', () => {
    throw first
  })
  ctx.on('session/event', async () => Promise.reject(second))
  ctx.on('session/event', (_session, event) => {
    heard.push(event.type)
  })
  assert.equal(session.append('turn/start', { turn: 1 }).seq, 0)
  await new Promise(setImmediate)
  assert.deepEqual(heard, ['turn/start'])
  assert.deepEqual(errors, [first, second])
})

test('an event that a listener appends is in the log at once, and everybody hears of the outer one first', async () => {
  const { ctx, session, heard } = await setup()
  ctx.on('session/event', (_session, event) => {
    heard.push(`a ${event.type}`)
    if (event.type !== 'turn/start') return
    const nested = session.append('step/start', { turn: 1, step: 1 })
    assert.equal(nested.seq, 1)
    assert.equal(session.at(1), nested)
    session.append('step/end', { turn: 1, step: 1 })
    heard.push(`a wrote ${session.length}`)
  })
  ctx.on('session/event', (_session, event) => {
    heard.push(`b ${event.type}`)
  })
  session.append('turn/start', { turn: 1 })
  assert.deepEqual(heard, [
    'a turn/start',
    'a wrote 3',
    'b turn/start',
    'a step/start',
    'b step/start',
    'a step/end',
    'b step/end',
  ])
})

test('observers that answer each other without end are stopped, and the log stays sound', async () => {
  const { ctx, session, errors } = await setup()
  ctx.on('session/event', () => {
    session.append('todo/write', { todos: [] })
  })
  session.append('turn/start', { turn: 1 })
  assert.equal(session.length, 1001)
  assert.equal((errors[0] as SessionError).code, 'REENTRANT_APPEND')
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
})

test('one observer may append many events for one', async () => {
  const { ctx, session } = await setup()
  ctx.on('session/event', (_session, event) => {
    if (event.type === 'turn/start')
      for (let step = 1; step <= 5000; step++) session.append('step/start', { turn: 1, step })
  })
  session.append('turn/start', { turn: 1 })
  assert.equal(session.length, 5001)
})

test('a check of the dispatch that throws keeps the event out of the log and off the surface', async () => {
  const { ctx, session, heard } = await setup()
  ctx.on('session/event', (_session, event) => {
    heard.push(event.type)
  })
  const off = ctx.on('internal/dispatch', (_mode, name) => {
    if (name === 'session/event') throw new RangeError('no')
  })
  const append = (): unknown => session.append('user/message', userFact('hi'), { surfaceOp: 'append' })
  assert.throws(append, RangeError)
  assert.equal(session.length, 0)
  assert.deepEqual(session.surface.nodes, [])
  off()
  append()
  assert.deepEqual(heard, ['user/message'])
})

test('a check that appends itself is refused, so that two events never claim one seq', async () => {
  const { ctx, session } = await setup()
  ctx.on('session/event', () => {})
  const off = ctx.on('internal/dispatch', (_mode, name) => {
    if (name === 'session/event') session.append('todo/write', { todos: [] })
  })
  assert.throws(() => session.append('turn/start', { turn: 1 }), { code: 'REENTRANT_APPEND' })
  off()
  assert.equal(session.append('turn/start', { turn: 1 }).seq, 0)
})

test('a surface event says where it goes, and no other event does', () => {
  const cases: readonly (readonly [intent: unknown, message: RegExp])[] = [
    [undefined, /surfaceOp is missing/],
    [{ surfaceOp: 'prepend' }, /surfaceOp is neither/],
    [{ surfaceOp: { op: 'replace', start: 0 } }, /surfaceOp is neither/],
    [{ surfaceOp: { op: 'replace', start: 0, end: 0, extra: 1 } }, /surfaceOp is neither/],
    [{ surfaceOp: 'append', sourceEventSeqs: 'all' }, /sourceEventSeqs is no list/],
    [{ surfaceOp: 'append', sourceEventSeqs: [1] }, /names 1, which is no earlier event/],
    [{ surfaceOp: 'append', sourceEventSeqs: [-1] }, /names -1/],
    [{ surfaceOp: 'append', sourceEventSeqs: [0.5] }, /names 0\.5/],
    [{ surfaceOp: 'append', sourceEventSeqs: [0, 0] }, /names an event twice/],
    [{ surfaceOp: 'append', sourceEventSeqs: [] }, /sourceEventSeqs is empty/],
  ]
  for (const [intent, message] of cases) {
    given(['turn/start', { turn: 1 }])
      .when(session => untyped(session)('user/message', userFact('hi'), intent))
      .throws({ code: 'INVALID_EVENT', message })
  }
  for (const intent of [{ surfaceOp: 'append' }, { sourceEventSeqs: [0] }]) {
    given(['turn/start', { turn: 1 }])
      .when(session => untyped(session)('todo/write', { todos: [] }, intent))
      .throws({ code: 'INVALID_EVENT', message: 'event "todo/write": the type is not on the surface' })
  }
})

test('an empty list of sources says that the stream was empty, which only an answer can', () => {
  const { session } = given().when(log =>
    log.append('assistant/message', answerFact(''), { surfaceOp: 'append', sourceEventSeqs: [] }),
  )
  assert.deepEqual(session.at(0)?.sourceEventSeqs, [])
})

test('a long run of sources is kept as a range and read as a list', () => {
  const session = Session.create(SessionId('s'))
  for (let index = 0; index < 20; index++)
    session.appendChunk(1, 1, { type: 'text-delta', index: 0, text: 'x' })
  const seqs = Array.from({ length: 20 }, (_, seq) => seq)
  for (const sourceEventSeqs of [seqs, { from: 0, to: 19 }]) {
    const event = session.append('assistant/message', answerFact('x'), {
      surfaceOp: 'append',
      sourceEventSeqs,
    })
    assert.deepEqual(event.sourceEventSeqs, seqs)
    assert.ok(Object.isFrozen(event.sourceEventSeqs))
    assert.deepEqual(JSON.parse(JSON.stringify(event)).sourceEventSeqs, seqs)
    assert.deepEqual(structuredClone(event).sourceEventSeqs, seqs)
  }
  const untidy = [...seqs.slice(0, 10), 12, 11]
  const event = session.append('assistant/message', answerFact('x'), {
    surfaceOp: 'append',
    sourceEventSeqs: untidy,
  })
  assert.deepEqual(event.sourceEventSeqs, untidy)
})

const broken: readonly (readonly [type: SessionEventType, data: unknown, message: RegExp])[] = [
  ['turn/start', { turn: 0 }, /turn is not a positive integer/],
  ['turn/start', [], /data is no record/],
  ['turn/end', { turn: 1 }, /reason has no kind/],
  ['step/end', { turn: 1, step: '1' }, /step is not a positive integer/],
  ['user/message', { ...userFact('a'), id: undefined }, /data\.id is undefined/],
  ['user/message', { role: 'user', content: [], source: { kind: 'user' } }, /id of message is not/],
  ['user/message', { ...userFact('a'), id: '' }, /id of message is not/],
  ['user/message', { ...userFact('a'), role: 'assistant' }, /role of message is not "user"/],
  ['user/message', { ...userFact('a'), source: {} }, /source of message has no kind/],
  ['user/message', { ...userFact('a'), content: 'a' }, /content of message is no list/],
  ['assistant/message', { turn: 1, step: 1, message: userFact('a') }, /role of message is not "assistant"/],
  [
    'assistant/message',
    { turn: 1, step: 1, message: { ...answerFact('a').message, source: { kind: 'model', provider: 'p' } } },
    /has no provider and model/,
  ],
  ['assistant/message', answerFact('a', ['']), /a tool-call block of message has no id/],
  ['tool/call', { ...callFact('c'), callId: CallId('') }, /callId is not a non-empty string/],
  ['tool/call', { ...callFact('c'), arguments: {} }, /name and arguments are not strings/],
  ['tool/result', resultFact('', 'x'), /source of message has no callId/],
  ['tool/result', { ...resultFact('c', 'x'), error: { name: 'E' } }, /error has no name and code/],
  ['request/context', { provider: 'p' }, /provider or model is missing/],
  ['agent/inbox/spliced', { target: 'later', start: 0, inserted: [] }, /target is neither/],
  ['agent/inbox/spliced', { target: 'next-turn', start: -1, inserted: [] }, /start is not a position/],
  [
    'agent/inbox/spliced',
    { target: 'next-turn', start: 0, inserted: [{ ...userFact('a'), id: MessageId('') }] },
    /id of inserted\[0\] is not/,
  ],
  ['assistant/chunk', { turn: 1, step: 1, chunk: { type: 'noise' } }, /chunk is not one of a model stream/],
  ['todo/write', { todos: [{ content: 'a', status: 'done' }] }, /todos are not all/],
  ['session/end-seed', {}, /only a new session writes it/],
]

for (const [type, data, message] of broken) {
  test(`"${type}" with wrong data is refused as it is read: ${message.source}`, () => {
    given()
      .when(session => untyped(session)(type, data, { surfaceOp: 'append' }))
      .throws({ message })
  })
}

test('a message that a plugin made wrongly is refused with the name of the plugin', () => {
  const source = { kind: 'plugin', plugin: 'weather', form: 'notice', summary: 'rain' } as const
  const { id: _, ...nameless } = { ...userFact('rain'), source }
  given()
    .when(session => untyped(session)('user/message', nameless, { surfaceOp: 'append' }))
    .throws({
      code: 'INVALID_EVENT',
      message: 'event "user/message" by plugin "weather": id of message is not a non-empty string',
    })
})

test('a result must name the call of its source', () => {
  const { message, ...rest } = resultFact('c', 'x')
  const other = { ...message, source: { kind: 'tool', callId: CallId('d') } } as const
  given()
    .when(session => session.append('tool/result', { ...rest, message: other }, { surfaceOp: 'append' }))
    .throws({ code: 'INVALID_EVENT', message: /toolCallId is not the callId of the source/ })
})

test('words of a former format are refused', () => {
  given()
    .when(session => untyped(session)('request/header-delta', {}))
    .throws({ code: 'INVALID_EVENT' })
  given()
    .when(session =>
      untyped(session)('request/header', {
        header: { config: { provider: 'p', model: 'm' } },
        reason: 'fallback',
      }),
    )
    .throws({ code: 'INVALID_EVENT', message: 'event "request/header": reason "fallback" is not known' })
})

test('types and keys named like members of Object are ordinary ones', () => {
  const data: unknown = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}')
  const { session } = given().when(log => {
    for (const type of ['__proto__', 'constructor', 'toString']) untyped(log)(type, data)
  })
  assert.deepEqual(
    session.events.map(event => [event.type, JSON.stringify(event.data)]),
    ['__proto__', 'constructor', 'toString'].map(type => [type, JSON.stringify(data)]),
  )
  assert.equal(session.last('toString' as never), session.at(2))
  assert.equal(session.last('valueOf' as never), undefined)
})

test('the compiler asks for the place of a surface event, and only of one', () => {
  const write = (session: Session): void => {
    // @ts-expect-error -- a surface event without its place
    session.append('user/message', userFact('hi'))
    // @ts-expect-error -- a place for an event that has none
    session.append('turn/start', { turn: 1 }, { surfaceOp: 'append' })
    session.append('turn/start', { turn: 1 }, { ignorable: true })
  }
  given().when(write).throws({ code: 'INVALID_EVENT', message: 'event "user/message": surfaceOp is missing' })
})
