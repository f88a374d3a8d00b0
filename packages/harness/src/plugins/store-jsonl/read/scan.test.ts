import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { constants, zstdCompressSync } from 'node:zlib'
import type { SessionEvent } from '@dsh/protocol'
import { logOf, userFact } from '../../../testing/index.ts'
import { encodeEvents } from '../format/encode.ts'
import type { OpenFile } from '../files/file-system.ts'
import { encodeFrame } from '../format/frames.ts'
import { chainHash, toChainLine, toHeaderLine } from '../format/records.ts'
import { LogScan, scanLog } from './scan.ts'
import type { ScannedLog } from './scan.ts'

const header = { version: 0, id: 's1', createdAt: 1 } as Parameters<typeof toHeaderLine>[0]
const events = logOf(
  ...Array.from({ length: 12 }, (_, index) => ['user/message', userFact(`message ${index} ñ漢`)] as const),
)

/** A log of frames with these sizes, and where each frame ends. */
async function logWith(...sizes: readonly number[]): Promise<{ bytes: Buffer; ends: readonly number[] }> {
  const frames = [encodeFrame(toHeaderLine(header))]
  let prev = chainHash(frames[0] as Buffer)
  let at = 0
  for (const size of sizes) {
    const { bytes, lastHash } = await encodeEvents(events.slice(at, at + size), prev, async () => '')
    frames.push(bytes)
    prev = lastHash
    at += size
  }
  let end = 0
  return { bytes: Buffer.concat(frames), ends: frames.map(frame => (end += frame.length)) }
}

/** A file that is never written. */
function fileOf(bytes: Buffer): OpenFile {
  const refuse = (): Promise<never> => Promise.reject(new Error('reading wrote'))
  return {
    stat: async () => ({ kind: 'file', size: bytes.length, mtimeMs: 0, identity: '0' }),
    read: async (position, length) => bytes.subarray(position, position + length),
    close: async () => {},
    write: refuse,
    truncate: refuse,
    sync: refuse,
  }
}

const getText = async (): Promise<undefined> => undefined

async function scan(bytes: Buffer): Promise<ScannedLog> {
  const log = await scanLog(fileOf(bytes), { getText })
  if (typeof log === 'string') throw new Error(log)
  return log
}

/** The log is a beginning of what was written, with at least `acknowledged` events, and nothing else. */
function assertPrefix(log: ScannedLog, acknowledged: number, hint: string): void {
  assert.ok(log.events.length >= acknowledged, `${hint}: ${log.events.length} of ${acknowledged} are left`)
  assert.deepEqual(log.events, events.slice(0, log.events.length), hint)
  assert.equal(log.length, log.events.length, hint)
  assert.deepEqual(log.gaps, [], hint)
}

test('whatever a crash made of the last frame, every event before it is read and nothing is invented', async () => {
  const { bytes, ends } = await logWith(3, 4, 5)
  const start = ends[2] as number
  for (let at = start; at < bytes.length; at += 11) {
    const hint = `at ${at} of ${start}…${bytes.length}`
    const cut = await scan(bytes.subarray(0, at))
    assertPrefix(cut, 7, `cut ${hint}`)
    assert.equal(cut.tail?.bytes, at === start ? undefined : at - start, hint)
    assert.equal(cut.end, start, hint)
    assertPrefix(
      await scan(Buffer.concat([bytes.subarray(0, at), Buffer.alloc(bytes.length - at)])),
      7,
      `zeros ${hint}`,
    )
    const noise = randomBytes(bytes.length - at)
    assertPrefix(await scan(Buffer.concat([bytes.subarray(0, at), noise])), 7, `noise ${hint}`)
  }
})

test('the same for a last frame of many blocks that another version may write, whose complete lines are kept', async () => {
  const { bytes, ends } = await logWith(3, 4)
  const prev = chainHash(bytes.subarray(ends[1]))
  const big = Array.from({ length: 500 }, (_, index) => ({
    ...(events[0] as SessionEvent),
    seq: 7 + index,
    data: userFact(randomBytes(400).toString('hex'), `message ${index}`),
  })) as SessionEvent[]
  const lines = big.map(event => `${JSON.stringify(event)}\n`).join('')
  const params = { [constants.ZSTD_c_checksumFlag]: 1 }
  const frame = zstdCompressSync(toChainLine({ firstSeq: 7, count: big.length, prev }) + lines, { params })
  const whole = [...events.slice(0, 7), ...big]
  const kept = new Set<number>()
  for (let at = 0; at < frame.length; at += 30_011) {
    const torn = Buffer.concat([bytes, frame.subarray(0, at)])
    for (const tail of [Buffer.alloc(0), Buffer.alloc(frame.length - at), randomBytes(frame.length - at)]) {
      const log = await scan(Buffer.concat([torn, tail]))
      assert.deepEqual(log.events, whole.slice(0, log.events.length), `at ${at}`)
      assert.ok(log.events.length >= 7)
      if (tail.length === 0) kept.add(log.events.length)
    }
  }
  assert.ok(kept.size >= 3 && Math.max(...kept) > 300, `kept ${[...kept].join()}`)
  // A block that never reached the disk in front of some that did decodes to other text without an error.
  for (let at = 4096; at < frame.length * 0.8; at += 30_011) {
    const holed = Buffer.from(frame.subarray(0, Math.floor(frame.length * 0.95))).fill(0, at, at + 4096)
    const log = await scan(Buffer.concat([bytes, holed]))
    assert.deepEqual(log.events, whole.slice(0, log.events.length), `hole at ${at}`)
  }
})

test('what lies behind the last frame is a tail: zeros, half a frame, noise', async () => {
  const { bytes, ends } = await logWith(3, 4)
  const half = bytes.subarray(ends[1], Math.floor(((ends[1] as number) + bytes.length) / 2))
  for (const tail of [
    Buffer.alloc(1),
    Buffer.alloc(64),
    Buffer.alloc(4096),
    half,
    randomBytes(1000),
    Buffer.from('('),
  ]) {
    const log = await scan(Buffer.concat([bytes, tail]))
    assertPrefix(log, 7, `${tail.length} bytes`)
    assert.equal(log.tail?.start, bytes.length)
    assert.equal(log.tail?.bytes, tail.length)
  }
})

test('a damaged frame in the middle ends the log; what is behind it is given apart', async () => {
  const { bytes, ends } = await logWith(3, 4, 5)
  for (let at = ends[1] as number; at < (ends[2] as number); at += 7) {
    const broken = Buffer.from(bytes)
    broken.writeUInt8(broken.readUInt8(at) ^ 0x55, at)
    const log = await scan(broken)
    assert.deepEqual(log.events, events.slice(0, 3), `at ${at}`)
    const [gap] = log.gaps
    assert.deepEqual([gap?.fromSeq, gap?.toSeq, gap?.events], [3, 6, events.slice(7)], `at ${at}`)
    assert.equal(gap?.bytes, (ends[2] as number) - (ends[1] as number))
  }
})

test('a lost frame, a doubled one and one in the wrong place are told apart', async () => {
  const { bytes, ends } = await logWith(2, 2, 2, 2)
  const part = (index: number): Buffer => bytes.subarray(ends[index - 1], ends[index])
  const scanParts = async (...order: readonly number[]): Promise<readonly unknown[]> => {
    const log = await scan(Buffer.concat([bytes.subarray(0, ends[0]), ...order.map(part)]))
    return [log.events.length, ...log.gaps.map(gap => gap.reason)]
  }
  assert.deepEqual(await scanParts(1, 2, 3, 4), [8])
  assert.deepEqual(await scanParts(1, 3, 4), [2, 'frame 2 begins with seq 4 where seq 2 was expected'])
  assert.deepEqual(await scanParts(1, 2, 2), [4, 'frame 3 is frame 2 once more'])
  assert.deepEqual(await scanParts(1, 2, 2, 3, 4), [8, 'frame 3 is frame 2 once more'])
  assert.deepEqual(await scanParts(2, 1, 3, 4), [
    8,
    'frame 1 (seq 2) stands before frame 2, which it follows',
  ])
})

test('a log that two programs wrote is read up to where they parted, and names both seqs', async () => {
  const { bytes, ends } = await logWith(3, 4)
  const prev = chainHash(bytes.subarray(ends[0], ends[1]))
  const other = [{ ...(events[3] as SessionEvent), time: 99 }] as SessionEvent[]
  const branch = await encodeEvents(other, prev, async () => '')
  const log = await scan(Buffer.concat([bytes, branch.bytes]))
  assert.deepEqual(log.events, events.slice(0, 7))
  const [gap] = log.gaps
  assert.equal(
    gap?.reason,
    'frame 3 goes on at seq 3, where the log has events up to seq 6: two programs wrote this log',
  )
  assert.deepEqual(gap?.events, other)
  assert.equal(log.tail, undefined)
})

test('a frame of the right seqs that continues another log is not taken', async () => {
  const { bytes } = await logWith(3)
  const foreign = await encodeEvents(events.slice(3, 5), '0'.repeat(32), async () => '')
  const log = await scan(Buffer.concat([bytes, foreign.bytes]))
  assert.deepEqual(log.events, events.slice(0, 3))
  assert.equal(log.gaps[0]?.reason, 'frame 2 (seq 3) was written behind another frame than the one before it')
})

test('a line that is not an event ends the log there, and the others are given apart', async () => {
  const { bytes } = await logWith(2)
  const prev = chainHash(bytes.subarray(encodeFrame(toHeaderLine(header)).length))
  const line = (index: number): string => JSON.stringify(events[index])
  for (const [bad, reason] of [
    ['{"seq":3', 'the line is not JSON'],
    ['[]', 'the line is not JSON'],
    [line(4), 'the line has seq 4, expected 3'],
    ['{"seq":3,"data":{}}', 'the line has no type'],
    ['{"seq":3,"type":"x"}', 'the line has no data'],
    [
      '{"seq":3,"type":"x","data":"","spill":[{"at":1}]}',
      'the line names its texts in a way that this version does not know',
    ],
  ] as const) {
    const text = `${toChainLine({ firstSeq: 2, count: 3, prev })}${line(2)}\n${bad}\n${line(4)}\n`
    const log = await scan(Buffer.concat([bytes, encodeFrame(text)]))
    assert.deepEqual(log.events, events.slice(0, 3), bad)
    assert.deepEqual(
      log.gaps.map(gap => [gap.fromSeq, gap.toSeq, gap.reason, gap.events]),
      [[3, 3, reason, [events[4]]]],
    )
  }
})

test('a file without a whole header says what it is instead', async () => {
  const { bytes, ends } = await logWith(1)
  const reasonOf = async (file: Buffer): Promise<unknown> => {
    const log = await scanLog(fileOf(file), { getText })
    return typeof log === 'string' ? log : 'a log'
  }
  assert.equal(await reasonOf(Buffer.alloc(0)), 'the file is empty')
  assert.equal(await reasonOf(bytes.subarray(0, 3)), 'the file ends inside its header')
  assert.equal(await reasonOf(bytes.subarray(0, (ends[0] as number) - 1)), 'the file ends inside its header')
  assert.equal(await reasonOf(randomBytes(1 << 20)), 'the file does not begin with a header frame')
  assert.equal(await reasonOf(bytes.subarray(ends[0])), 'the first frame is not one line')
  assert.equal(await reasonOf(encodeFrame('not JSON\n')), 'the header is not JSON')
  assert.equal(await reasonOf(encodeFrame('{"seq":0}\n')), 'this is not the header of a session')
  assert.equal(await reasonOf(encodeFrame('{"type":"session","version":0}\n')), 'the header has no id')
  assert.equal(
    await reasonOf(encodeFrame('{"type":"session","id":"x"}\n')),
    'the header has version undefined',
  )
  assert.equal(await reasonOf(bytes.subarray(0, ends[0])), 'a log')
})

test('a long read lets other work in between, and stops when it is called off', async t => {
  const { bytes } = await logWith(1, 1, 1, 1)
  let now = 0
  t.mock.method(performance, 'now', () => (now += 40))
  const controller = new AbortController()
  const reason = new Error('enough')
  setImmediate(() => controller.abort(reason))
  await assert.rejects(scanLog(fileOf(bytes), { getText, signal: controller.signal }), reason)
})

test('a long log is read in pieces, and given in pieces, however long it is', async () => {
  const big = Array.from({ length: 400 }, (_, seq) => ({
    ...(events[0] as SessionEvent),
    seq,
    data: userFact(randomBytes(8000).toString('hex'), `message ${seq}`),
  })) as SessionEvent[]
  const head = encodeFrame(toHeaderLine(header))
  const { bytes } = await encodeEvents(big, chainHash(head), getNothing)
  const file = fileOf(Buffer.concat([head, bytes]))
  const asked: number[] = []
  const counting: OpenFile = {
    ...file,
    read(position, length) {
      asked.push(length)
      return file.read(position, length)
    },
  }
  const scan = await LogScan.open(counting, { getText })
  assert.ok(typeof scan !== 'string')
  const sizes: number[] = []
  let next = 0
  for await (const batch of scan.batches()) {
    sizes.push(JSON.stringify(batch.events).length)
    for (const event of batch.events) assert.equal(event.seq, next++)
  }
  assert.equal(next, 400)
  const longest = 256 * 1024
  assert.ok(bytes.length > 10 * longest)
  assert.ok(Math.max(...asked) <= longest, `${Math.max(...asked)} bytes at once`)
  // A batch ends with the frame in which it becomes too long.
  assert.ok(Math.max(...sizes) < longest + 100 * 1024, `${Math.max(...sizes)} in a batch`)
})

async function getNothing(): Promise<string> {
  return ''
}
