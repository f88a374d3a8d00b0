import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { faultyFileSystem, logOf, userFact } from '../../../testing/index.ts'
import { createLocalProcesses } from '../../persistence/index.ts'
import { encodeEvents } from '../format/encode.ts'
import type { FileSystem } from '../files/file-system.ts'
import { decodeFrame, encodeFrame, frameAt } from '../format/frames.ts'
import { localFileSystem } from '../local.ts'
import { JsonlMedium } from '../medium.ts'
import { chainHash } from '../format/records.ts'

const id = SessionId('s1')
const header: SessionHeader = { version: 0, id, createdAt: 1, cwd: '/srv' }
const short = logOf(
  ...Array.from({ length: 12 }, (_, index) => ['user/message', userFact(`message ${index}`)] as const),
)
const events = short.with(4, {
  ...(short[4] as SessionEvent),
  data: userFact('x'.repeat(70_000), 'long'),
} as SessionEvent)

/** The real files, without waiting for the disk: one of these tests makes thousands of small writes. */
const hastyFiles: FileSystem = {
  ...localFileSystem,
  syncFolder: async () => {},
  open: async (path, use) => ({ ...(await localFileSystem.open(path, use)), sync: async () => {} }),
}

type Frames = readonly [Buffer, Buffer, Buffer, Buffer]

/** A log of four frames: the header, then seqs 0–2, 3–6 and 7–11; a text of event 4 lies beside it. */
async function setup(t: TestContext, fs: FileSystem = hastyFiles) {
  const root = mkdtempSync(join(tmpdir(), 'repair-'))
  t.after(() => rmSync(root, { recursive: true }))
  const host = { processes: createLocalProcesses(), now: () => 1_700_000_000_000 }
  const sound = new JsonlMedium(root, { ...host, fs: hastyFiles })
  const writer = sound.begin(header)
  await writer.append(events.slice(0, 3))
  await writer.append(events.slice(3, 7))
  await writer.append(events.slice(7))
  await writer.close()
  const path = sound.locate(header)
  const put = (...parts: readonly Uint8Array[]): void => writeFileSync(path, Buffer.concat(parts))
  const names = (): readonly string[] => readdirSync(dirname(path)).toSorted()
  const medium = new JsonlMedium(root, { ...host, fs })
  return { root, medium, sound, path, frames: framesOf(readFileSync(path)), put, names }
}

function framesOf(bytes: Buffer): Frames {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length; at += frames.at(-1)?.length ?? 0) {
    const found = frameAt(bytes, at)
    frames.push(bytes.subarray(at, 'end' in found ? found.end : bytes.length))
  }
  return frames as unknown as Frames
}

/** More than a flipped bit. */
function spoiled(frame: Buffer, at = 30): Buffer {
  return Buffer.from(frame).fill('spoiled', at, at + 7)
}

async function branchOf(prev: Buffer, first: number, texts: readonly string[]): Promise<Buffer> {
  return (await encodeEvents(eventsFrom(first, texts), chainHash(prev), async () => '')).bytes
}

function eventsFrom(first: number, texts: readonly string[]): readonly SessionEvent[] {
  return texts.map(
    (text, at) => ({ ...events[first], seq: first + at, data: userFact(text, text) }) as SessionEvent,
  )
}

const keptName = 'log-before-repair-1700000000000.jsonl.zst'

test('a sound log is left as it is', async t => {
  const { medium, path, names } = await setup(t)
  const before = readFileSync(path)
  assert.deepEqual(await medium.repair(id), { events: 12, branches: [] })
  assert.deepEqual(readFileSync(path), before)
  assert.deepEqual(names(), ['artifacts', 'log.jsonl.zst'])
  await assert.rejects(medium.repair(SessionId('none')), { code: 'SESSION_NOT_FOUND' })
})

test('a log with damage in the middle becomes its beginning, the old file stays, and it says what is lost', async t => {
  const { medium, path, frames, put, names } = await setup(t)
  const [head, first, second, last] = frames
  put(head, first, spoiled(second), last)
  const old = readFileSync(path)
  const kept = join(dirname(path), keptName)
  assert.deepEqual(await medium.repair(id), {
    kept,
    events: 3,
    lost: [
      { fromSeq: 3, toSeq: 6, reason: 'a frame does not match its checksum' },
      { fromSeq: 7, toSeq: 11, reason: 'a frame does not match its checksum', isReadable: true },
    ],
    branches: [],
  })
  assert.deepEqual(names(), ['artifacts', keptName, 'log.jsonl.zst'])
  assert.deepEqual(readFileSync(kept), old)
  assert.deepEqual(readFileSync(path), Buffer.concat([head, first]))
  const { log, writer } = await medium.resume(id)
  assert.deepEqual(log.events, events.slice(0, 3))
  await writer.append(events.slice(3))
  await writer.close()
  assert.deepEqual((await medium.verify(id)).problems, [])
})

test('frames in the wrong order or doubled are put right, and nothing is lost', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames
  for (const order of [
    [second, first, last],
    [first, second, second, last],
    [last, second, first],
  ]) {
    put(head, ...order)
    const { kept, events: count, lost } = await medium.repair(id)
    assert.deepEqual([typeof kept, count, lost], ['string', 12, undefined])
    assert.deepEqual((await medium.read(id))?.events, events)
    assert.deepEqual((await medium.verify(id)).problems, [])
  }
})

test('whichever single bit flipped, the log is byte for byte what was written, and nothing is lost', async t => {
  const { medium, frames, put, path } = await setup(t)
  const sound = Buffer.concat(frames)
  const last = sound.length - frames[3].length
  let mended = 0
  for (let at = 0; at < sound.length; at += 397) {
    const broken = Buffer.from(sound)
    broken.writeUInt8(broken.readUInt8(at) ^ (1 << (at % 8)), at)
    put(broken)
    const { kept = '', ...result } = await medium.repair(id)
    const hint = `byte ${at}: ${JSON.stringify(result)}`
    assert.deepEqual(result, { events: 12, mended: 1, branches: [] }, hint)
    assert.deepEqual(readFileSync(path), sound, hint)
    assert.deepEqual(readFileSync(kept), broken, hint)
    mended += at >= last ? 1 : 0
  }
  assert.ok(mended > 1)
})

test('a last frame with a flipped bit is not cut off but refused, and goes on once it is repaired', async t => {
  const { medium, frames, put, path, names } = await setup(t)
  const sound = Buffer.concat(frames)
  const last = sound.length - frames[3].length
  // Of the magic number, lengths, the text and the checksum.
  for (const at of [0, 5, 8, 150, frames[3].length - 2].map(each => last + each)) {
    const broken = Buffer.from(sound)
    broken.writeUInt8(broken.readUInt8(at) ^ 1, at)
    put(broken)
    await assert.rejects(medium.resume(id), {
      code: 'SESSION_DAMAGED',
      sessionId: id,
      message: `the log of session "s1" is damaged: a bit of the last frame is not the one that was written: ${path}`,
    })
    assert.deepEqual(readFileSync(path), broken)
    await medium.repair(id)
    const { log, writer } = await medium.resume(id)
    assert.deepEqual([log.events.length, await writer.mend()], [12, undefined])
    await writer.close()
  }
  assert.deepEqual(
    names().filter(name => name.startsWith('torn-at')),
    [],
  )
})

test('an end that a crash broke off is cut off, even where the zero in its place lacks a single bit', async t => {
  const { medium, frames, put, path } = await setup(t)
  const before = Buffer.concat(frames.slice(0, 3))
  const texts = Array.from({ length: 4000 }, (_, nth) => branchOf(frames[2], 7, [`text ${nth}`]))
  const close = (await Promise.all(texts)).find(frame => frame.at(-1) === 0x40) ?? Buffer.alloc(0)
  assert.ok(close.length > 0)
  const zeroed = Buffer.concat([close.subarray(0, -1), Buffer.alloc(1)])
  for (const end of [close.subarray(0, -1), zeroed, spoiled(close)]) {
    put(before, end)
    const { writer } = await medium.resume(id)
    assert.match((await writer.mend()) ?? '', /^\d+ bytes at the end of the log were cut off /)
    await writer.close()
    assert.deepEqual(readFileSync(path).subarray(0, before.length), before)
  }
})

test('a bit that no decoder looks at is put right, in the middle and at the end', async t => {
  const { medium, frames, put, path } = await setup(t)
  const sound = Buffer.concat(frames)
  for (const nth of [2, 3]) {
    const broken = Buffer.from(sound)
    const at = Buffer.concat(frames.slice(0, nth)).length + 4
    broken.writeUInt8(broken.readUInt8(at) ^ 0b10000, at)
    put(broken)
    assert.equal((await medium.verify(id)).problems.length, 1)
    assert.deepEqual((await medium.repair(id)).mended, 1)
    assert.deepEqual(readFileSync(path), sound)
  }
})

test('a header that is spoiled beyond that is nothing that can be mended', async t => {
  const { medium, frames, put, path } = await setup(t)
  const [head, ...rest] = frames
  put(spoiled(head), ...rest)
  const before = readFileSync(path)
  await assert.rejects(medium.repair(id), { code: 'SESSION_DAMAGED', message: /header frame does not match/ })
  assert.deepEqual(readFileSync(path), before)
})

test('what stands before a bad line of a frame stays', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames
  const lines = decodeFrame(second).toString('utf8').trimEnd().split('\n')
  put(head, first, encodeFrame(`${lines.with(3, '{"seq":5}').join('\n')}\n`), last)
  const { events: count, lost } = await medium.repair(id)
  assert.equal(count, 5)
  assert.deepEqual(lost?.[0], { fromSeq: 5, toSeq: 5, reason: 'the line has no type' })
  assert.deepEqual((await medium.read(id))?.events, events.slice(0, 5))
  assert.deepEqual((await medium.verify(id)).problems, [])
})

test('a last frame that was changed is taken away, and its events are named', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames
  put(head, first, second, spoiled(last, 150))
  const { events: count, lost } = await medium.repair(id)
  assert.equal(count, 7)
  assert.deepEqual(lost, [{ fromSeq: 7, toSeq: 11, reason: 'a frame does not match its checksum' }])
  assert.deepEqual((await medium.read(id))?.events, events.slice(0, 7))
})

test('each branch that another program wrote becomes a session of its own, with what lies beside the log', async t => {
  const { medium, frames, put, path } = await setup(t)
  const [head, first, second, last] = frames
  const one = await branchOf(second, 7, ['one 7', 'one 8'])
  const two = await branchOf(first, 3, ['two 3'])
  const three = await branchOf(one, 9, ['three 9'])
  const four = await branchOf(one, 9, ['four 9', 'four 10'])
  put(head, first, second, last, one, two, three, four)
  const { kept, events: count, lost, branches } = await medium.repair(id)
  assert.deepEqual([kept, count, lost], [join(dirname(path), keptName), 12, undefined])
  assert.deepEqual((await medium.read(id))?.events, events)
  const expected = [
    { seedLength: 3, own: eventsFrom(3, ['two 3']) },
    { seedLength: 7, own: [...eventsFrom(7, ['one 7', 'one 8']), ...eventsFrom(9, ['three 9'])] },
    { seedLength: 7, own: [...eventsFrom(7, ['one 7', 'one 8']), ...eventsFrom(9, ['four 9', 'four 10'])] },
  ]
  assert.equal(branches.length, 3)
  for (const [at, { seedLength, own }] of expected.entries()) {
    const branch = branches[at]
    assert.ok(branch)
    const branchId = branch.header.id
    assert.match(branchId, /^s1-branch-[0-9a-f]{8}$/)
    assert.deepEqual(branch.header, { ...header, id: branchId, parentSession: id, seedLength })
    assert.equal(branch.events, seedLength + own.length)
    const log = await medium.read(branchId)
    assert.deepEqual(log?.header, branch.header)
    assert.deepEqual(log?.events, [...events.slice(0, seedLength), ...own])
    assert.deepEqual((await medium.verify(branchId)).problems, [])
    const { writer } = await medium.resume(branchId)
    await writer.append(eventsFrom(branch.events, ['more']))
    await writer.close()
  }
})

test('a branch that leaves the log behind its damage has no beginning, and stays in the old file', async t => {
  const { medium, frames, put } = await setup(t)
  const [head, first, second, last] = frames
  const branch = await branchOf(second, 7, ['one 7'])
  put(head, spoiled(first), second, last, branch)
  const { events: count, lost, branches } = await medium.repair(id)
  assert.deepEqual([count, branches], [0, []])
  assert.deepEqual(
    lost?.map(({ fromSeq, toSeq, isReadable }) => [fromSeq, toSeq, isReadable]),
    [
      [0, 2, undefined],
      [3, 11, true],
      [7, 7, true],
    ],
  )
})

test('a session that is open in a program is not repaired', async t => {
  const { medium, path, frames, put } = await setup(t)
  const { writer } = await medium.resume(id)
  const [head, first, second, last] = frames
  put(head, first, spoiled(second), last)
  await assert.rejects(medium.repair(id), { code: 'SESSION_HELD' })
  await writer.close()
  assert.deepEqual(readFileSync(path), Buffer.concat([head, first, spoiled(second), last]))
})

test('wherever a repair fails, the old log is there or the new one, and it can be done again', async t => {
  const broken = async (own: TestContext) => {
    const fs = faultyFileSystem(hastyFiles)
    const store = await setup(own, fs)
    const [head, first, second, last] = store.frames
    store.put(head, first, second, last, await branchOf(first, 3, ['two 3']), spoiled(second), last)
    return { ...store, fs }
  }
  const probe = await broken(t)
  await probe.medium.repair(id)
  const calls = probe.fs.calls.length
  assert.ok(calls > 40, `${calls} calls`)
  for (let nth = 1; nth <= calls; nth += 7) {
    const { medium, sound, fs } = await broken(t)
    const hint = `call ${nth}: ${probe.fs.calls[nth - 1]}`
    fs.inject({ nth, code: 'EIO' })
    const result = await medium.repair(id).catch(() => undefined)
    fs.inject()
    assert.deepEqual((await sound.read(id))?.events, events, hint)
    const again = result ?? (await sound.repair(id))
    assert.equal(again.events, 12, hint)
    assert.deepEqual((await sound.verify(id)).problems, [], hint)
    const rows = (await sound.list()).map(({ id: row }) => String(row))
    assert.equal(rows.length, 2, `${hint}: ${rows.join()}`)
  }
})
