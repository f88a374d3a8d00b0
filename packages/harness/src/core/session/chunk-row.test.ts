import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { SessionEvent, StreamChunk } from '@dsh/protocol'
import fc from 'fast-check'
import { isChunkRow, packChunks, Session, unpackRow } from './index.ts'
import type { ChunkRow } from './index.ts'

/** Everything of a list that was packed, stored as lines and read again. */
function throughLines(events: readonly SessionEvent[]): { readonly lines: number; readonly text: string } {
  const packed = packChunks(events).map(item => JSON.stringify(item))
  const read = packed.flatMap(line => {
    const value = JSON.parse(line) as SessionEvent | ChunkRow
    if (!isChunkRow(value)) return [value]
    const members = unpackRow(value)
    assert.ok(typeof members !== 'string')
    return members
  })
  return { lines: packed.length, text: JSON.stringify(read) }
}

const time = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: -5, max: 60 }).map(gap => 1_700_000_000_000 + gap) },
  fc.constantFrom(0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 1.5),
)
const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
  fc.constantFrom('', '\ud800', 'x'.repeat(16_385), 'x'.repeat(9000)),
)
const small = fc.constantFrom(1, 1, 1, 2)
const index = fc.constantFrom(0, 0, 0, 1)
const callId = fc.constantFrom('c1', 'c1', 'c2').map(id => CallId(id))
const delta = fc.oneof(
  fc.record({ type: fc.constantFrom('text-delta', 'reasoning-delta'), index, text }),
  fc.record({ type: fc.constant('tool-call-delta'), index, id: callId, argumentsDelta: text }),
  fc.record({
    type: fc.constant('tool-call-delta'),
    index,
    id: callId,
    name: fc.constantFrom('a', 'b'),
    argumentsDelta: text,
  }),
)
/** What a row cannot hold: other kinds of chunks, further keys, keys in another order. */
const odd = fc.constantFrom<unknown>(
  { type: 'text-delta', text: 'a', index: 0 },
  { type: 'text-delta', index: 0, text: 'a', more: 1 },
  { type: 'text-delta', index: 0, text: 1 },
  { type: 'tool-call-delta', index: 0, argumentsDelta: 'a', id: 'c1' },
  { type: 'finish', reason: { kind: 'stop' } },
  null,
)
const chunkEvent = fc.record({
  time,
  turn: small,
  step: small,
  chunk: fc.oneof({ weight: 12, arbitrary: delta }, odd),
})
const otherEvent = fc.constantFrom(
  { type: 'x/y', data: {} },
  { type: 'assistant/chunk', data: null },
  {
    type: 'assistant/chunk',
    data: { turn: 1, step: 1, chunk: { type: 'text-delta', index: 0, text: 'a' } },
    ignorable: true,
  },
)
const log = fc
  .array(fc.oneof({ weight: 20, arbitrary: chunkEvent }, otherEvent), { maxLength: 60 })
  .map(drafts =>
    drafts.map((draft, seq) =>
      'chunk' in draft
        ? {
            type: 'assistant/chunk',
            seq,
            time: draft.time,
            data: { turn: draft.turn, step: draft.step, chunk: draft.chunk },
          }
        : { ...draft, seq, time: seq },
    ),
  ) as fc.Arbitrary<unknown> as fc.Arbitrary<SessionEvent[]>

test('whatever events are packed, the very same come back, each with its keys in their order', () => {
  fc.assert(
    fc.property(log, events => {
      assert.equal(throughLines(events).text, JSON.stringify(events))
    }),
    { numRuns: 300 },
  )
})

function chunksOf(...texts: readonly string[]): SessionEvent[] {
  return texts.map((each, seq) => {
    const chunk: StreamChunk = { type: 'text-delta', index: 0, text: each }
    return { type: 'assistant/chunk', seq, time: 1000 + seq * 40, data: { turn: 1, step: 1, chunk } }
  })
}

test('three deltas of one block are one row, two are not, and a row has a limit', () => {
  assert.equal(packChunks(chunksOf('a', 'b')).length, 2)
  assert.deepEqual(packChunks(chunksOf('a', 'b', 'c')), [
    {
      type: 'text-chunks',
      seq0: 0,
      time0: 1000,
      data: { turn: 1, step: 1, index: 0, dt: [40, 40], texts: ['a', 'b', 'c'] },
    },
  ])
  assert.equal(packChunks(chunksOf(...Array.from({ length: 2048 }, () => 'x'))).length, 2)
  assert.equal(packChunks(chunksOf(...Array.from({ length: 8 }, () => 'x'.repeat(4096)))).length, 2)
})

test('a row that is not right is refused with the reason', () => {
  const [row] = packChunks(chunksOf('a', 'b', 'c')) as [ChunkRow]
  const broken = (change: object): unknown =>
    unpackRow({ ...row, data: { ...row.data, ...change } } as ChunkRow)
  assert.equal(unpackRow({ ...row, seq0: 'x' } as never), 'the row of chunks has no place')
  assert.equal(unpackRow({ ...row, data: null } as never), 'the row of chunks has no place')
  assert.equal(broken({ later: 1 }), 'the row of chunks has a member "later" that this version does not know')
  assert.equal(broken({ dt: [40] }), 'the row of chunks has not one time for each text')
  assert.equal(broken({ texts: 'abc' }), 'the row of chunks has not one time for each text')
  assert.equal(broken({ dt: [40, 0.5] }), 'the row of chunks has a bad member')
  assert.equal(broken({ texts: ['a', 1, 'c'] }), 'the row of chunks has a bad member')
})

test('a restored session makes events of chunks anew for each reader, as a live one does', () => {
  const events = chunksOf('a', 'b', 'c', 'd')
  const session = Session.fromRestore(SessionId('s'), structuredClone(events), {
    version: 0,
    id: SessionId('s'),
    createdAt: 1,
  })
  assert.deepEqual(session.events.slice(0, 4), events)
  assert.notEqual(session.at(1), session.at(1))
  const copied = Session.create(SessionId('s'), events)
  assert.deepEqual(copied.events.slice(0, 4), events)
  assert.notEqual(copied.at(1), copied.at(1))
})
