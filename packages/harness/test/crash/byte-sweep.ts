import { isDeepStrictEqual } from 'node:util'
import { SessionId } from '@dsh/protocol'
import { examine, randomOf } from '../../src/testing/index.ts'
import type { Finding } from '../../src/testing/index.ts'
import { turnOf } from '../../src/testing/contracts/store-samples.ts'
import { Machine } from './machine.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'
import { create, store } from './scenarios.ts'

export interface SweepOptions {
  readonly seed: string
  /** Every so manieth offset; 1 = all. */
  readonly stride: number
}

interface SweptLog {
  readonly machine: Machine
  /** Where the second batch begins. */
  readonly middle: number
  /** Where the last batch begins. */
  readonly start: number
  /** Events before it. */
  readonly safe: number
}

/** A log of three batches, the last of which was never acknowledged. */
async function threeBatches(length: number): Promise<SweptLog> {
  const machine = new Machine()
  const program = await machine.start()
  const session = create(program)
  await store(program, session, ...turnOf('one'))
  const middle = machine.log().length
  await store(program, session, ...turnOf('two', 2))
  const safe = session.length
  const start = machine.log().length
  const text = Array.from({ length }, (_, index) =>
    String.fromCodePoint(97 + ((index * 7 + (index >> 3)) % 26)),
  ).join('')
  await store(program, session, ...turnOf(`three ${text}`, 3))
  machine.kill()
  return { machine, middle, start, safe }
}

/** Whatever became of the last bytes of a log, the acknowledged ones are there and the session goes on. */
export async function sweepBytes(length: number, { seed, stride }: SweepOptions): Promise<Row> {
  const tally = new Tally(`each byte of the last write (${length === 0 ? 'short' : 'compressed'})`)
  const random = randomOf(`${seed} sweep ${length}`)
  const { machine, start, safe } = await threeBatches(length)
  const whole = machine.log()
  const tears: [string, (log: Buffer) => Buffer][] = []
  for (let at = start + random.below(stride); at < whole.length; at += stride) {
    tears.push([`cut at byte ${at}`, log => log.subarray(0, at)])
    tears.push([
      `zeros from byte ${at}`,
      log => Buffer.concat([log.subarray(0, at), Buffer.alloc(log.length - at)]),
    ])
    // Such an end is tried for a flipped bit, and of a compressed one that takes seconds.
    if (length > 0 && (at - start) % 499 >= stride) continue
    tears.push([
      `garbage from byte ${at}`,
      log => Buffer.concat([log.subarray(0, at), garbage(log.subarray(at), random)]),
    ])
  }
  for (const zeros of [1, 64, 4096]) {
    tears.push([`${zeros} zeros behind it`, log => Buffer.concat([log, Buffer.alloc(zeros)])])
    tears.push([
      `${zeros} zeros in its place`,
      log => Buffer.concat([log.subarray(0, start), Buffer.alloc(zeros)]),
    ])
  }
  for (const part of [0.1, 0.5, 0.9]) {
    const end = start + Math.max(1, Math.floor((whole.length - start) * part))
    tears.push([`${part} of it`, log => log.subarray(0, end)])
    tears.push([`${part} of it twice`, log => Buffer.concat([log, log.subarray(start, end)])])
  }
  for (const [text, tear] of tears) {
    const left = machine.torn(safe, tear)
    tally.add(text, await examine(left.remains, left.ledger.current))
  }
  return tally.row
}

/** Other bytes in the place of these; what differs in one bit alone is no garbage but a flipped bit. */
function garbage(bytes: Buffer, random: ReturnType<typeof randomOf>): Buffer {
  const other = Buffer.from(random.bytes(bytes.length))
  if (bytes.length > 0) other.writeUInt8((other.readUInt8(0) & ~3) | (~bytes.readUInt8(0) & 3), 0)
  return other
}

/** Any flipped bit of acknowledged events is told, and nothing behind it is taken for the session. */
export async function flipBits({ seed, stride }: SweepOptions): Promise<Row> {
  const tally = new Tally('each bit of a committed frame')
  const random = randomOf(`${seed} bits`)
  const { machine, middle, start } = await threeBatches(0)
  for (let bit = random.below(stride); bit < (start - middle) * 8; bit += stride) {
    const at = middle + (bit >> 3)
    const left = machine.torn(0, log => flip(log, at, bit & 7))
    tally.add(`bit ${bit & 7} of byte ${at}`, await checkDamage(left))
  }
  return tally.row
}

function flip(log: Buffer, at: number, bit: number): Buffer {
  const flipped = Buffer.from(log)
  flipped[at] = (flipped[at] ?? 0) ^ (1 << bit)
  return flipped
}

async function checkDamage(machine: Machine): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const tell = (rule: Finding['rule'], text: string, lost = 0): void =>
    void findings.push({ rule, text, lost })
  const id = SessionId('s1')
  const written = machine.ledger.current.get(id)?.events ?? []
  const { ctx, stop } = await machine.start()
  try {
    const { events, gaps = [], readOnly } = await ctx.sessionPersistence.inspect(id)
    const before = turnOf('one').length
    const same = events.findIndex((event, index) => !isDeepStrictEqual(event, written[index]))
    if (same !== -1) tell('no invention', `event ${same} is not the one that was written`)
    if (events.length < before)
      tell('acknowledged', `${events.length} of ${before} events before the damage`, before)
    if (readOnly === undefined || gaps.length === 0) tell('available', 'the damage is not told')
    for (const event of gaps.flatMap(gap => gap.events))
      if (!isDeepStrictEqual(event, written[event.seq]))
        tell('no invention', `event ${event.seq} behind the gap is another`)
    const code = await ctx.sessionPersistence.prepare(id).then(
      () => 'nothing',
      (error: { readonly code?: string }) => error.code,
    )
    if (code !== 'SESSION_DAMAGED') tell('available', `resuming gives ${code}`)
  } finally {
    await stop()
  }
  return findings
}
