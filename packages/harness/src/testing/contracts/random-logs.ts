import fc from 'fast-check'
import { CallId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'

/** An event that has no place in a log yet; `pause` is the time since the one before, in ms. */
export interface LooseEvent {
  readonly pause: number
  readonly rest: Readonly<Record<string, unknown>>
}

const oddities = ['\ud83c', '\udf89', '\u0000', '\n', '\r\n', '\u2028', '漢', '"', '\\']

/** Texts that codecs stumble over: half characters, controls, line ends, long ones. */
const text = fc.oneof(
  { weight: 10, arbitrary: fc.string({ maxLength: 8 }) },
  {
    weight: 5,
    arbitrary: fc.array(fc.constantFrom(...oddities), { maxLength: 6 }).map(parts => parts.join('')),
  },
  { weight: 1, arbitrary: fc.constantFrom(500, 17_000, 70_000).map(length => 'x'.repeat(length)) },
)

/** As JSON gives it back: a negative zero is none. */
const json = fc
  .oneof(fc.jsonValue({ maxDepth: 3 }), fc.record({ long: text }))
  .map(value => JSON.parse(JSON.stringify(value)) as unknown)

const pause = fc.constantFrom(0, 0, 1, 7, 60_000, -5)

const fact: fc.Arbitrary<LooseEvent> = fc.record({
  pause,
  rest: fc.record(
    { type: fc.constantFrom('x/any', 'todo/write'), data: json, ignorable: fc.constant(true) },
    { requiredKeys: ['type', 'data'] },
  ),
})

const node: fc.Arbitrary<LooseEvent> = fc.record({
  pause,
  rest: fc.record({
    type: fc.constantFrom('user/message', 'assistant/message'),
    data: json,
    surfaceOp: fc.oneof(
      fc.constant('append'),
      fc.record({ op: fc.constant('replace'), start: fc.nat(50), end: fc.nat(50) }),
    ),
    sourceEventSeqs: fc
      .uniqueArray(fc.nat(60), { maxLength: 12 })
      .map(seqs => seqs.toSorted((a, b) => a - b)),
  }),
})

/** Deltas of one block, which stores may keep as one. Now and then one is like no other. */
const stream: fc.Arbitrary<readonly LooseEvent[]> = fc
  .record({
    kind: fc.constantFrom('text-delta', 'reasoning-delta', 'tool-call-delta'),
    turn: fc.constantFrom(1, 2),
    index: fc.nat(2),
    pieces: fc.array(fc.tuple(text, pause, fc.nat(20)), { maxLength: 12 }),
  })
  .map(({ kind, turn, index, pieces }) =>
    pieces.map(([piece, wait, odd]) => delta(kind, { turn, index, piece, wait, odd })),
  )

interface Piece {
  readonly turn: number
  readonly index: number
  readonly piece: string
  readonly wait: number
  /** 0 and 1 make the delta unlike the others. */
  readonly odd: number
}

function delta(kind: string, { turn, index, piece, wait, odd }: Piece): LooseEvent {
  const body =
    kind === 'tool-call-delta'
      ? { id: CallId('c1'), ...(odd === 0 ? { name: 'bash' } : {}), argumentsDelta: piece }
      : { text: piece }
  const chunk = { type: kind, index: odd === 1 ? index + 1 : index, ...body }
  return { pause: wait, rest: { type: 'assistant/chunk', data: { turn, step: 1, chunk } } }
}

/** What one write may hold. */
export const looseEvents: fc.Arbitrary<readonly LooseEvent[]> = fc
  .array(
    fc.oneof(
      fact.map(one => [one]),
      node.map(one => [one]),
      stream,
    ),
    { maxLength: 6 },
  )
  .map(parts => parts.flat())

/** The events as they stand in a log from `seq` on. Nothing about them need be right but their place. */
export function placed(loose: readonly LooseEvent[], seq: number, time: number): readonly SessionEvent[] {
  let now = time
  return loose.map(({ pause: wait, rest: { type, ...rest } }, index) => {
    now += wait
    return { type, seq: seq + index, time: now, ...rest } as unknown as SessionEvent
  })
}
