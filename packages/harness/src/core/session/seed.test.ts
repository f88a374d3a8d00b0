import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { answerFact, given, headerFact, logOf, resultFact, userFact } from '../../testing/given.ts'
import { EventTypes, Session, SessionFormatUnsupportedError } from './index.ts'

const id = SessionId('s')
const header: SessionHeader = { version: 0, id, createdAt: 1 }
const endSeed = { type: 'session/end-seed', seq: 1, time: 1, data: {} } as SessionEvent

function parsed(events: readonly SessionEvent[]): SessionEvent[] {
  return events.map(event => JSON.parse(JSON.stringify(event)) as SessionEvent)
}

const turn = logOf(
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('hi')],
  ['request/header', headerFact()],
  ['request/context', { provider: 'mock', model: 'mock', contextWindow: 1000 }],
  ['assistant/message', answerFact('hello'), { sourceEventSeqs: [] }],
  ['step/end', { turn: 1, step: 1 }],
  ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
)

test('a session made from stored events shows what the one that wrote them showed', () => {
  const source = Session.create(id, turn, header)
  for (const copy of [
    Session.create(id, parsed(turn), header),
    Session.fromRestore(id, parsed(turn), header),
    Session.fromRestore(id, source.events, header),
  ]) {
    assert.deepEqual(copy.requestHeader(), source.requestHeader())
    assert.deepEqual(copy.requestContext(), source.requestContext())
    assert.deepEqual(copy.surface, source.surface)
    assert.deepEqual(copy.messages, source.messages)
    assert.deepEqual(copy.events.slice(0, turn.length), turn)
  }
})

test('a seed is ended by one mark of its own, unless it ends with one', () => {
  const start = logOf(['turn/start', { turn: 1 }])
  const cases = [
    [undefined, 0, 0],
    [[], 1, 0],
    [start, 2, 1],
    [[...start, endSeed], 2, 2],
  ] as const
  for (const [seed, length, firstLive] of cases) {
    const session = Session.create(id, seed, header)
    assert.equal(session.length, length)
    assert.equal(session.firstLiveSeq, firstLive)
    if (length > 0) assert.equal(session.events.at(-1)?.type, 'session/end-seed')
  }
  const reopened = Session.fromRestore(id, parsed(Session.fromRestore(id, [], header).events), header)
  assert.equal(reopened.length, 1)
})

test('only the mark of a fork says that the events were inherited', () => {
  const fork = { ...header, parentSession: SessionId('p'), seedLength: turn.length }
  const born = Session.create(id, turn, fork)
  assert.deepEqual(born.last('session/end-seed')?.data, { inherited: true })
  born.append('todo/write', { todos: [] })
  const resumed = Session.fromRestore(id, parsed(born.events), fork)
  assert.deepEqual(resumed.last('session/end-seed')?.data, {})
  assert.deepEqual(Session.create(id, turn, header).last('session/end-seed')?.data, {})
})

test('a seed that the caller keeps is copied, one that is given away is frozen where it stands', () => {
  const kept = parsed(turn)
  const session = Session.create(id, kept, header)
  assert.notEqual(session.at(0), kept[0])
  Object.assign(kept[0]?.data as object, { turn: 9 })
  assert.deepEqual(session.at(0)?.data, { turn: 1 })

  const given = parsed(turn)
  const restored = Session.fromRestore(id, given, header)
  for (const [seq, event] of given.entries()) {
    assert.equal(restored.at(seq), event)
    assert.ok(Object.isFrozen(event) && Object.isFrozen(event.data))
  }
  assert.equal(restored.messages[0], given[2]?.data)
})

test('a stored event with 20 000 levels of nesting is taken', () => {
  let value: unknown = 1
  for (let level = 0; level < 20_000; level++) value = [value]
  const event = { type: 'x/deep', seq: 0, time: 1, data: value, ignorable: true } as unknown as SessionEvent
  const session = Session.fromRestore(id, [event], header)
  assert.equal(session.at(0), event)
  assert.ok(Object.isFrozen((event.data as unknown as unknown[])[0]))
  assert.equal(Session.create(id, [event], header).length, 2)
})

const broken: readonly (readonly [name: string, change: object, message: RegExp])[] = [
  ['a gap', { seq: 3 }, /its seq is 3/],
  ['a type that is no string', { type: 1 }, /its type is no string/],
  ['a time with a fraction', { time: 0.5 }, /its time is no integer/],
  ['no data', { data: undefined }, /it has no data/],
  ['a false mark', { ignorable: false }, /ignorable is not true/],
  ['no place on the surface', { surfaceOp: null }, /surfaceOp is neither/],
  ['data that is not of the type', { data: { ...userFact('a'), id: '' } }, /id of message is not/],
  ['data that JSON does not keep', { data: { ...userFact('a'), extra: -0 } }, /it\.data\.extra is -0/],
  ['bad sources', { sourceEventSeqs: [7] }, /names 7, which is no earlier event/],
  [
    'an answer without a provider',
    {
      type: 'assistant/message',
      data: {
        ...answerFact('a'),
        message: { ...answerFact('a').message, source: { kind: 'model', model: 'm' } },
      },
    },
    /has no provider and model/,
  ],
  [
    'a header of a former form',
    { type: 'request/header-delta', data: {}, surfaceOp: undefined },
    /request\/header-delta/,
  ],
  [
    'a replacement of nothing',
    { surfaceOp: { op: 'replace', start: 0, end: 0 }, sourceEventSeqs: [0] },
    /0 is not on the surface/,
  ],
  ['a place where none belongs', { type: 'turn/start', data: { turn: 2 } }, /its type is not on the surface/],
]

function without(value: unknown, record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, each]) => each !== value))
}

for (const [name, change, message] of broken) {
  test(`a seed with ${name} is refused by the number of the event`, () => {
    const events = logOf(['turn/start', { turn: 1 }], ['user/message', userFact('a')])
    const seed = (): SessionEvent[] =>
      [events[0], without(undefined, { ...events[1], ...change })] as SessionEvent[]
    for (const make of [Session.create.bind(Session), Session.fromRestore.bind(Session)]) {
      assert.throws(
        () => make(id, seed(), header),
        error => {
          assert.match(String(error), message)
          assert.match(String(error), /event 1\b/)
          assert.equal((error as { seq?: unknown }).seq, 1)
          return true
        },
      )
    }
  })
}

test('a source of an unknown kind and a further member of the data are kept, and the session goes on', () => {
  const source = { kind: 'oracle', of: 'delphi' }
  const prompt = { ...userFact('a'), source, mood: 'calm' }
  const seed = parsed(
    logOf(['user/message', prompt as never], ['turn/start', { turn: 1, why: 'asked' } as never]),
  )
  const session = Session.fromRestore(id, seed, header)
  assert.equal(session.readOnly, undefined)
  assert.deepEqual(session.flagged, [])
  assert.deepEqual(session.at(0)?.data, prompt)
  assert.deepEqual(session.at(1)?.data, { turn: 1, why: 'asked' })
  assert.deepEqual(session.messages[0]?.source, source)
  assert.equal(session.append('turn/end', { turn: 1, reason: { kind: 'completed' } }).type, 'turn/end')
})

test('a member of an event that a later version wrote is kept, and the session can be looked at and not continued', () => {
  const [first, second] = logOf(['turn/start', { turn: 1 }], ['user/message', userFact('a')])
  const strange = (change: object): SessionEvent[] => [{ ...first, ...change }, second] as SessionEvent[]
  const session = Session.fromRestore(id, strange({ extra: { a: 1 } }), header)
  assert.equal(
    session.readOnly,
    'session "s": event 0 ("turn/start") has a member "extra" that this version of dsh does not know; update it and open the session again',
  )
  assert.deepEqual(session.events, [{ ...first, extra: { a: 1 } }, second])
  assert.throws(() => session.append('turn/end', { turn: 1, reason: { kind: 'completed' } }), {
    code: 'READ_ONLY',
  })
  assert.equal(Session.fromRestore(id, strange({ extra: 1, ignorable: true }), header).readOnly, undefined)
  assert.throws(() => Session.create(id, strange({ extra: 1 }), header), {
    message: 'event 0: it has an unknown key "extra"',
  })
})

test('the markers of adapter defaults mark what the config has', () => {
  const config = { provider: 'p', model: 'm', maxTokens: 10 }
  const refuse = (adapterDefaults: unknown, message: RegExp): void => {
    const data = { header: { config, adapterDefaults }, reason: 'initial' } as never
    given()
      .when(session => session.append('request/header', data))
      .throws({ message })
  }
  refuse({ temperature: true }, /adapterDefaults\.temperature of header is not a known marker/)
  refuse({ maxTokens: false }, /adapterDefaults\.maxTokens of header is not a known marker/)
  refuse({ reasoningEffort: true }, /adapterDefaults\.reasoningEffort of header marks nothing/)
  const { session } = given().when(log =>
    log.append('request/header', {
      header: { config, adapterDefaults: { maxTokens: true } },
      reason: 'initial',
    }),
  )
  assert.deepEqual(session.requestHeader()?.adapterDefaults, { maxTokens: true })
})

test('a header is checked, frozen, and its own id is the one it names', () => {
  const wrong: readonly (readonly [change: object, message: RegExp])[] = [
    [{ id: 'other' }, /header of session "s": it names session "other"/],
    [{ createdAt: 0.5 }, /createdAt is not a time/],
    [{ createdAt: 8.64e15 + 2 }, /createdAt is not a time/],
    [{ cwd: 'relative' }, /cwd is not an absolute path/],
    [{ seedLength: -1 }, /seedLength is not a count/],
    [{ delegationDepth: '1' }, /delegationDepth is not a count/],
    [{ origin: 'parent' }, /origin is not "subagent"/],
  ]
  for (const [change, message] of wrong) {
    const bad = { ...header, ...change } as SessionHeader
    assert.throws(() => Session.create(id, undefined, bad), { code: 'INVALID_HEADER', message })
    assert.throws(() => Session.fromRestore(id, [], bad), { code: 'INVALID_HEADER', message })
  }
  assert.throws(() => Session.fromRestore(id, [], undefined as never), TypeError)
  assert.throws(() => Session.create(SessionId('')), { code: 'INVALID_HEADER' })
  const session = Session.create(id, undefined, { ...header, cwd: '/work', later: 1 } as SessionHeader)
  assert.deepEqual(session.header, { ...header, cwd: '/work', later: 1 })
  assert.throws(() => Object.assign(session.header, { cwd: '/' }), TypeError)
  assert.equal(session.id, id)
})

test('a log of another format is refused by direction, not called damaged', () => {
  const make = (version: number): unknown => Session.fromRestore(id, [], { ...header, version })
  assert.throws(
    () => make(1),
    error => {
      assert.ok(error instanceof SessionFormatUnsupportedError)
      assert.equal(error.direction, 'newer')
      assert.equal(
        error.message,
        'session "s" was written by a newer harness; upgrade this one (format 1, read is 0)',
      )
      return true
    },
  )
  assert.throws(() => make(-1), { code: 'FORMAT_UNSUPPORTED', direction: 'older' })
})

const unknown = { type: 'other/fact', seq: 1, time: 1, data: [1] } as unknown as SessionEvent

test('a stored event of an unknown type makes the log read-only, never unreadable', () => {
  const seed = parsed([...logOf(['user/message', userFact('a')]), unknown])
  const session = Session.fromRestore(id, seed, header)
  assert.match(
    session.readOnly ?? '',
    /events of type "other\/fact" \(first: 1\), which no loaded plugin declares/,
  )
  assert.equal(session.length, 2)
  assert.deepEqual(session.messages.length, 1)
  assert.throws(() => session.append('turn/start', { turn: 1 }), {
    code: 'READ_ONLY',
    message: /"turn\/start" cannot be appended: .*"other\/fact"/,
  })
  assert.throws(() => session.appendChunk(1, 1, { type: 'text-delta', index: 0, text: '' }), {
    code: 'READ_ONLY',
  })
  assert.equal(session.length, 2)
})

test('an unknown type that may be skipped, or that a plugin declares, is no obstacle', () => {
  const skippable = { ...unknown, ignorable: true } as SessionEvent
  const log = logOf(['user/message', userFact('a')])
  const skipped = Session.fromRestore(id, parsed([...log, skippable]), header)
  assert.equal(skipped.readOnly, undefined)
  assert.equal(skipped.append('turn/start', { turn: 1 }).seq, 3)
  const types = new EventTypes()
  types.add({ type: 'other/fact' as never }, 'other')
  assert.equal(Session.fromRestore(id, parsed([...log, unknown]), header, { types }).readOnly, undefined)
})

test('a session may be opened for reading alone, and then nothing is written into it', () => {
  const session = Session.fromRestore(id, parsed(turn), header, { readOnly: 'it is damaged behind event 7' })
  assert.equal(session.length, turn.length)
  assert.throws(() => session.append('turn/start', { turn: 2 }), {
    message: '"turn/start" cannot be appended: it is damaged behind event 7',
  })
})

test('an event that its plugin refuses is flagged, and only folds miss it', () => {
  const types = new EventTypes()
  const validate = (data: unknown): void => {
    if (data !== 'good') throw new Error(`${String(data)} is not good`)
  }
  types.add({ type: 'other/fact' as never, validate }, 'other')
  const events = [
    { ...unknown, seq: 0, data: 'good' },
    { ...unknown, seq: 1, data: 'bad' },
    { ...unknown, seq: 2, data: 'good' },
  ] as unknown as SessionEvent[]
  const session = Session.fromRestore(id, parsed(events), header, { types })
  assert.deepEqual(session.flagged, [
    {
      seq: 1,
      type: 'other/fact',
      plugin: 'other',
      reason: 'event "other/fact" of plugin "other": bad is not good',
    },
  ])
  const seen = { name: 'seen', types: ['other/fact' as never], init: () => [] as number[] }
  const apply = (state: number[], event: SessionEvent): number[] => [...state, event.seq]
  assert.deepEqual(session.fold({ ...seen, apply }), [0, 2])
  assert.equal(session.length, 4)
  session.append('tool/result', resultFact('c', 'x'), { surfaceOp: 'append' })
})
