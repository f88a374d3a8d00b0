import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { logOf, userFact } from '../../../testing/index.ts'
import { createLocalProcesses } from '../../persistence/index.ts'
import { encodeEvents } from '../format/encode.ts'
import { decodeFrame, encodeFrame, frameAt } from '../format/frames.ts'
import { localFileSystem } from '../local.ts'
import { JsonlMedium } from '../medium.ts'
import { chainHash, toHeaderLine } from '../format/records.ts'

const id = SessionId('s1')
const header: SessionHeader = { version: 0, id, createdAt: 1, cwd: '/srv' }
const events = logOf(
  ...Array.from({ length: 12 }, (_, index) => ['user/message', userFact(`message ${index}`)] as const),
)

/** A log of four frames: the header, then seqs 0–2, 3–6 and 7–11. */
async function setup(t: TestContext, own: readonly SessionEvent[] = events) {
  const root = mkdtempSync(join(tmpdir(), 'damage-'))
  t.after(() => rmSync(root, { recursive: true }))
  let now = 1_700_000_000_000
  const host = { fs: localFileSystem, processes: createLocalProcesses(), now: () => now++ }
  const medium = new JsonlMedium(root, host)
  const writer = medium.begin(header)
  await writer.append(own.slice(0, 3))
  await writer.append(own.slice(3, 7))
  await writer.append(own.slice(7))
  await writer.close()
  const path = medium.locate(header)
  const bytes = readFileSync(path)
  const frames = framesOf(bytes)
  const put = (...parts: readonly Uint8Array[]): void => writeFileSync(path, Buffer.concat(parts))
  return { root, medium, path, folder: dirname(path), bytes, frames, put }
}

function framesOf(bytes: Buffer): readonly Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const found = frameAt(bytes, at)
    assert.equal(found.kind, 'data')
    const end = 'end' in found ? found.end : bytes.length
    frames.push(bytes.subarray(at, end))
    at = end
  }
  return frames
}

type Frames = readonly [Buffer, Buffer, Buffer, Buffer]

/** What is found, without the words. */
async function problemsOf(medium: JsonlMedium): Promise<readonly unknown[]> {
  const { problems } = await medium.verify(id)
  return problems.map(({ code, frame, seq }) => [code, frame, seq])
}

function rewrite(frame: Buffer, change: (lines: string[]) => readonly string[]): Buffer {
  const lines = decodeFrame(frame).toString('utf8').trimEnd().split('\n')
  return encodeFrame(`${change(lines).join('\n')}\n`)
}

async function branchOf(prev: Buffer, first: number, texts: readonly string[]): Promise<Buffer> {
  const own = texts.map((text, at) => ({ ...events[first], seq: first + at, data: userFact(text, text) }))
  return (await encodeEvents(own as SessionEvent[], chainHash(prev), async () => '')).bytes
}

test('a sound log has no problems, and its report counts what is in it', async t => {
  const { medium, bytes } = await setup(t)
  assert.deepEqual(await medium.verify(id), {
    header,
    frames: 4,
    frameStarts: [0, 3, 7],
    events: 12,
    bytes: bytes.length,
    problems: [],
  })
  await assert.rejects(medium.verify(SessionId('none')), { code: 'SESSION_NOT_FOUND' })
})

test('whichever bit flips, it is found in its frame, at the first seq that it takes away', async t => {
  const { medium, path, bytes, frames } = await setup(t)
  const starts = frames.map((_, at) => frames.slice(0, at).reduce((sum, frame) => sum + frame.length, 0))
  const seqs = [undefined, 0, 3, 7]
  for (let at = 0; at < bytes.length; at += 29) {
    const frame = starts.findLastIndex(start => start <= at)
    const broken = Buffer.from(bytes)
    broken.writeUInt8(broken.readUInt8(at) ^ (1 << (at % 8)), at)
    writeFileSync(path, broken)
    const report = await medium.verify(id)
    const [problem] = report.problems
    const hint = `byte ${at} of frame ${frame}: ${JSON.stringify(report)}`
    assert.deepEqual(readFileSync(path), broken)
    assert.deepEqual(
      [problem?.frame, problem?.seq, problem?.offset],
      [frame, seqs[frame], starts[frame]],
      hint,
    )
  }
})

test('a bit that makes the last frame look broken off, or that no decoder looks at, is found too', async t => {
  const { medium, path, bytes, frames } = await setup(t)
  const start = bytes.length - (frames as Frames)[3].length
  // Of the magic number, the descriptor (the one that nothing reads among them), lengths and the text.
  for (const bit of [0, 31, 34, 36, 37, 41, 50, 58, 70, 900]) {
    const broken = Buffer.from(bytes)
    const at = start + (bit >> 3)
    broken.writeUInt8(broken.readUInt8(at) ^ (1 << (bit & 7)), at)
    writeFileSync(path, broken)
    const { problems, tornBytes } = await medium.verify(id)
    assert.deepEqual(
      [problems.map(({ code, frame, seq, offset }) => [code, frame, seq, offset]), tornBytes],
      [[['LAST_FRAME_DAMAGED', 3, 7, start]], undefined],
      `bit ${bit}`,
    )
  }
})

test('a flipped bit in the text of the last frame is told from a write that a crash broke off', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames as Frames
  const flipped = Buffer.from(last)
  flipped.writeUInt8(flipped.readUInt8(150) ^ 1, 150)
  put(head, first, second, flipped)
  assert.deepEqual((await medium.verify(id)).problems, [
    {
      code: 'LAST_FRAME_DAMAGED',
      message:
        'a frame does not match its checksum, and nothing of it is missing: it was changed, or a crash changed its end',
      frame: 3,
      seq: 7,
      offset: head.length + first.length + second.length,
    },
  ])
})

test('what a crash leaves at the end is no damage, and is told', async t => {
  const { medium, bytes, frames, put } = await setup(t)
  const [, , , last] = frames as Frames
  const tails = [
    last.subarray(0, 40),
    Buffer.alloc(64),
    randomBytes(500),
    Buffer.concat([last.subarray(0, 90), Buffer.alloc(99)]),
  ]
  for (const tail of tails) {
    put(bytes, tail)
    const { problems, tornBytes, events: count } = await medium.verify(id)
    assert.deepEqual([problems, tornBytes, count], [[], tail.length, 12])
  }
})

test('a line that was taken out of a frame is missed, whatever the frame says of itself', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames as Frames
  put(
    head,
    first,
    rewrite(second, lines => lines.toSpliced(2, 1)),
    last,
  )
  const { problems } = await medium.verify(id)
  assert.deepEqual(problems, [
    {
      code: 'FRAME_DAMAGED',
      message: 'a frame has 3 lines where 4 were written',
      frame: 2,
      seq: 3,
      offset: head.length + first.length,
    },
  ])
  const recount = (lines: string[]): readonly string[] => [
    (lines[0] ?? '').replace('"count":4', '"count":3'),
    ...lines.slice(1, -1),
  ]
  put(head, first, rewrite(second, recount), last)
  assert.deepEqual((await medium.verify(id)).problems, [
    {
      code: 'FRAME_MISSING',
      message: 'frame 3 begins with seq 7 where seq 6 was expected',
      frame: 3,
      seq: 6,
      offset: head.length + first.length + rewrite(second, recount).length,
    },
  ])
})

test('a frame without the line that says where it belongs is damage, also at the end', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames as Frames
  put(
    head,
    first,
    rewrite(second, lines => lines.slice(1)),
    last,
  )
  assert.deepEqual(await problemsOf(medium), [['FRAME_DAMAGED', 2, 3]])
  put(
    head,
    first,
    second,
    rewrite(last, lines => lines.slice(1)),
  )
  assert.deepEqual(await problemsOf(medium), [['FRAME_DAMAGED', 3, 7]])
  assert.equal((await medium.read(id))?.events.length, 7)
})

test('frames that are missing, doubled, exchanged or changed are told apart', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames as Frames
  put(head, first, last)
  assert.deepEqual(await problemsOf(medium), [['FRAME_MISSING', 2, 3]])
  put(head, first, second, second, last)
  assert.deepEqual(await problemsOf(medium), [['FRAME_REPEATED', 3, 3]])
  put(head, second, first, last)
  assert.deepEqual(await problemsOf(medium), [['FRAME_MISPLACED', 1, 12]])
  assert.deepEqual((await medium.read(id))?.events, events)
  put(
    head,
    first,
    rewrite(second, lines => lines.with(2, (lines[2] ?? '').replace('message 4', 'message 5'))),
    last,
  )
  assert.deepEqual(await problemsOf(medium), [['FRAME_FOREIGN', 3, 7]])
  assert.equal((await medium.read(id))?.events.length, 7)
})

test('a log under another id, or with another header, is found', async t => {
  const { medium, frames, put, folder } = await setup(t)
  const [, first, second, last] = frames as Frames
  const copy = join(dirname(folder), 's2')
  cpSync(folder, copy, { recursive: true })
  const { problems } = await medium.verify(SessionId('s2'))
  assert.deepEqual(problems, [
    {
      code: 'HEADER_FOREIGN',
      message: `the folder of session "s2" holds the log of session "s1": ${join(copy, 'log.jsonl.zst')}`,
      frame: 0,
      offset: 0,
    },
  ])
  await assert.rejects(medium.repair(SessionId('s2')), {
    code: 'SESSION_DAMAGED',
    message: /"s2" holds the log of session "s1"/,
  })
  put(encodeFrame(toHeaderLine({ ...header, createdAt: 2 })), first, second, last)
  assert.deepEqual(await problemsOf(medium), [['FRAME_FOREIGN', 1, 0]])
  put(first, second, last)
  assert.deepEqual(await problemsOf(medium), [['HEADER_DAMAGED', 0, undefined]])
  await assert.rejects(medium.repair(id), { code: 'SESSION_DAMAGED' })
})

test('a text beside the log that is missing or another one is found', async t => {
  const long = { ...(events[4] as SessionEvent), data: userFact('x'.repeat(70_000), 'long') } as SessionEvent
  const { medium, folder } = await setup(t, events.with(4, long))
  const [name = ''] = readdirSync(join(folder, 'artifacts'))
  for (const break_ of [
    () => writeFileSync(join(folder, 'artifacts', name), 'x'),
    () => rmSync(join(folder, 'artifacts', name)),
  ]) {
    break_()
    const { problems } = await medium.verify(id)
    assert.deepEqual(problems, [
      {
        code: 'ARTIFACT_DAMAGED',
        message: `a text of event 4 is missing or damaged: artifact ${name.replace('.zst', '')}`,
        frame: 2,
        seq: 4,
        offset: problems[0]?.offset,
      },
    ])
  }
})

test('where two programs wrote behind one frame, frame and both seqs are named, and what was read first stays', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames as Frames
  const other = await branchOf(first, 3, ['other 3', 'other 4'])
  const more = await branchOf(other, 5, ['other 5'])
  put(head, first, second, other, last, more)
  const { problems, events: count } = await medium.verify(id)
  assert.deepEqual(
    problems.map(({ code, message, frame, seq }) => [code, message, frame, seq]),
    [
      [
        'LOG_FORKED',
        'frame 3 goes on at seq 3, where the log has events up to seq 11: two programs wrote this log',
        3,
        3,
      ],
    ],
  )
  assert.equal(count, 15)
  const log = await medium.read(id)
  assert.deepEqual(log?.events, events)
  assert.deepEqual(
    log?.gaps[0]?.events.map(({ seq }) => seq),
    [3, 4, 5],
  )
})
