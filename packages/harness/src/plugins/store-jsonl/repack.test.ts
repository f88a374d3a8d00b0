import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { faultyFileSystem, logOf, textFact, userFact } from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import { encodeFrame } from './format/frames.ts'
import type { FileSystem } from './files/file-system.ts'
import { localFileSystem } from './local.ts'
import { JsonlMedium } from './medium.ts'
import { chainHash, toChainLine, toHeaderLine } from './format/records.ts'
import { packLines } from './repack.ts'

const id = SessionId('s1')
const header: SessionHeader = { version: 0, id, createdAt: 1, cwd: '/srv' }
const hour = 3_600_000

/** 1,400 events, every fourth with a text beside the log. */
const events = logOf(
  ...Array.from({ length: 1400 }, (_, index): Draft => {
    if (index === 700) return ['user/message', userFact('x'.repeat(70_000), 'long')]
    return index % 4 === 0
      ? ['user/message', userFact(`message ${index} `.repeat(20), `m${index}`)]
      : ['assistant/chunk', textFact(`some words of an answer ${index} `.repeat(5))]
  }),
)

/** The real files, without waiting for the disk. */
const hastyFiles: FileSystem = {
  ...localFileSystem,
  syncFolder: async () => {},
  open: async (path, use) => ({ ...(await localFileSystem.open(path, use)), sync: async () => {} }),
}

/** The log as an older version wrote it: two events in each frame, chunks as they are. */
function oldLog(own: readonly SessionEvent[], artifact: string): Buffer {
  const frames = [encodeFrame(toHeaderLine(header))]
  for (let at = 0; at < own.length; at += 2) {
    const lines = own.slice(at, at + 2).map(event => JSON.stringify(event).replace(/"x{70000}"/, '""'))
    const spill = `,"spill":[{"path":["data","content",0,"text"],"sha256":"${artifact}","bytes":70000}]}`
    const text = lines
      .map(line => (line.includes('"id":"long"') ? line.replace(/\}$/, spill) : line))
      .join('\n')
    const chain = toChainLine({ firstSeq: at, count: lines.length, prev: chainHash(frames.at(-1) as Buffer) })
    frames.push(encodeFrame(`${chain}${text}\n`))
  }
  return Buffer.concat(frames)
}

/** The same for all: they read it, and replace the file that holds it. */
let wholeLog: Buffer | undefined

async function setup(t: TestContext, fs: FileSystem = hastyFiles) {
  const root = mkdtempSync(join(tmpdir(), 'repack-'))
  t.after(() => rmSync(root, { recursive: true }))
  const clock = { now: 1_700_000_000_000 }
  const open = (files = fs): JsonlMedium =>
    new JsonlMedium(root, { fs: files, processes: createLocalProcesses(), now: () => clock.now })
  const medium = open(hastyFiles)
  const writer = medium.begin(header)
  const { sha256 } = await writer.putArtifact(Buffer.from('x'.repeat(70_000)), 'text/plain')
  await writer.append(events.slice(0, 1))
  await writer.close()
  const path = medium.locate(header)
  const bytes = (wholeLog ??= oldLog(events, sha256))
  const put = (content: Buffer, mtime = clock.now - 2 * hour): void => {
    writeFileSync(path, content)
    utimesSync(path, mtime / 1000, mtime / 1000)
  }
  put(bytes)
  const names = (): readonly string[] => readdirSync(dirname(path)).toSorted()
  return { open, medium, path, bytes, put, names, clock }
}

test('a cold log of many small frames becomes few large ones with the same events, and keeps its place in lists', async t => {
  const { medium, path, bytes, names } = await setup(t)
  const [before] = await medium.list()
  const report = await medium.verify(id)
  assert.deepEqual([report.frames, report.problems], [701, []])
  await medium.sweep()
  assert.ok(statSync(path).size < bytes.length / 2)
  const packed = await medium.verify(id)
  assert.ok(packed.frames < 5)
  assert.deepEqual([packed.events, packed.problems], [1400, []])
  assert.equal(JSON.stringify((await medium.read(id))?.events), JSON.stringify(events))
  const [after] = await medium.list()
  assert.ok(before !== undefined && after !== undefined && 'header' in before && 'header' in after)
  assert.notEqual(after.revision, before.revision)
  assert.deepEqual([after.header, after.updatedAt], [before.header, before.updatedAt])
  assert.deepEqual(names(), ['artifacts', 'log.jsonl.zst'])
  const { log, writer } = await medium.resume(id)
  assert.equal(log.events.length, 1400)
  await writer.append([{ ...(events[0] as SessionEvent), seq: 1400 }])
  await writer.close()
  assert.deepEqual((await medium.verify(id)).problems, [])
  const again = readFileSync(path)
  await medium.sweep()
  assert.deepEqual(readFileSync(path), again)
})

test('a log that is warm, small, held, damaged or torn stays as it is, and so does one whose time cannot be kept', async t => {
  const { open, medium, path, bytes, put, clock } = await setup(t)
  const assertStays = async (store = medium): Promise<void> => {
    const before = readFileSync(path)
    await store.sweep()
    assert.deepEqual(readFileSync(path), before)
  }
  put(bytes, clock.now - hour / 2)
  await assertStays()
  put(bytes.subarray(0, bytes.indexOf(encodeFrame('').subarray(0, 4), 200_000)))
  await assertStays()
  put(Buffer.concat([bytes, Buffer.alloc(9)]))
  await assertStays()
  const broken = Buffer.from(bytes)
  broken.writeUInt8(broken.readUInt8(1000) ^ 1, 1000)
  put(broken)
  await assertStays()
  put(bytes)
  const { setTime: _, ...timeless } = hastyFiles
  await assertStays(open(timeless))
  const { writer } = await medium.resume(id)
  await assertStays(open())
  await writer.close()
})

test('whatever fails, the log is the old one or the packed one, and no draft stays for long', async t => {
  const calls = await (async () => {
    const fs = faultyFileSystem(hastyFiles)
    const { open } = await setup(t, fs)
    await open().sweep()
    return fs.calls.length
  })()
  assert.ok(calls > 25, `${calls} calls`)
  for (let nth = 1; nth <= calls; nth += 19) {
    for (const times of [1, Infinity]) {
      const fs = faultyFileSystem(hastyFiles)
      const { open, medium, names, clock } = await setup(t, fs)
      fs.inject({ nth, times, code: 'EIO' })
      await open()
        .sweep()
        .catch(() => undefined)
      const hint = `call ${nth} × ${times}`
      const log = await medium.read(id)
      assert.equal(log?.events.length, 1400, hint)
      assert.deepEqual(log?.gaps, [], hint)
      clock.now = Date.now() + 2 * hour
      await medium.sweep()
      const left = names().filter(name => name.endsWith('.tmp'))
      assert.deepEqual(left, [], hint)
    }
  }
})

test('a log that grew while it was packed keeps what was added', async t => {
  const { open, path, bytes } = await setup(t)
  const more = encodeFrame('more')
  const fs: FileSystem = {
    ...hastyFiles,
    async setTime() {
      appendFileSync(path, more)
    },
  }
  await open(fs).sweep()
  assert.deepEqual(readFileSync(path), Buffer.concat([bytes, more]))
})

test('a store that closes gives up what it packs and leaves nothing of it', async t => {
  const { open, path, bytes, names } = await setup(t)
  let store: JsonlMedium | undefined
  let closed: Promise<void> | undefined
  const fs: FileSystem = {
    ...hastyFiles,
    async open(at, use) {
      if (use === 'create' && at.endsWith('.tmp')) closed = store?.close()
      return hastyFiles.open(at, use)
    },
  }
  store = open(fs)
  await store.sweep()
  await closed
  assert.ok(closed !== undefined)
  assert.deepEqual(readFileSync(path), bytes)
  assert.deepEqual(names(), ['artifacts', 'log.jsonl.zst'])
})

test('lines that a row would not give back to the letter stay lines', () => {
  const line = (seq: number): string =>
    JSON.stringify({ type: 'assistant/chunk', seq, time: 1, data: textFact('a') })
  const strange = line(3).replace('"time":1', '"time": 1')
  const lines = [line(0), line(1), line(2), strange, line(4), line(5), 'no JSON', line(6), line(7), line(8)]
  const packed = packLines(lines)
  assert.equal(packed.length, 6)
  assert.deepEqual(packed.slice(1, 5), [strange, line(4), line(5), 'no JSON'])
})
