import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { faultyFileSystem, logOf, userFact } from '../../testing/index.ts'
import type { FaultyFileSystem } from '../../testing/index.ts'
import { isProvablyDead } from '../persistence/index.ts'
import type { LogWriter, ProcessIdentity } from '../persistence/index.ts'
import type { FileSystem } from './files/file-system.ts'
import { localFileSystem } from './local.ts'
import { JsonlMedium } from './medium.ts'

const id = SessionId('s1')
const header = { version: 0, id, createdAt: 1, cwd: '/srv' }
const events = logOf(
  ...Array.from({ length: 9 }, (_, index) => ['user/message', userFact(`message ${index}`)] as const),
)
const long = {
  ...(events[8] as SessionEvent),
  data: userFact('x'.repeat(70_000), 'long'),
} as SessionEvent
const all = events.with(8, long)

/** The real files, without waiting for the disk: these tests make thousands of small writes. */
const hastyFiles: FileSystem = {
  ...localFileSystem,
  syncFolder: async () => {},
  open: async (path, use) => ({ ...(await localFileSystem.open(path, use)), sync: async () => {} }),
}

/** A root, and programs that open it, each of which may die. */
function setup(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'faults-'))
  t.after(() => rmSync(root, { recursive: true }))
  const dead = new Set<number>()
  let next = 100
  const program = (fs = faultyFileSystem(hastyFiles)) => {
    const self: ProcessIdentity = { pid: next++, start: '1', boot: 'b', host: 'h', space: 'p' }
    const look = (pid: number): 'gone' | { start: string } => (dead.has(pid) ? 'gone' : { start: '1' })
    const processes = {
      self: () => self,
      isDead: (other: ProcessIdentity) => isProvablyDead(other, self, look),
    }
    const medium = new JsonlMedium(join(root, 'sessions'), { fs, processes, now: () => 1_700_000_000_000 })
    return { fs, medium, die: () => dead.add(self.pid) }
  }
  const path = program().medium.locate(header)
  const files = (): readonly string[] => readdirSync(dirname(path)).toSorted()
  return { path, files, program }
}

/** Three appends; each is tried `tries` times. Gives how many events were acknowledged. */
async function write(
  medium: JsonlMedium,
  tries: number,
): Promise<{ writer: LogWriter; acknowledged: number }> {
  const writer = medium.begin(header)
  let acknowledged = 0
  for (const end of [3, 7, 9]) {
    for (let attempt = 0; attempt < tries && acknowledged < end; attempt += 1) {
      await writer.append(all.slice(acknowledged, end)).then(
        () => (acknowledged = end),
        (error: Error & { code?: string }) => assert.equal(error.code, 'STORE_FAILED', error.stack),
      )
    }
    if (acknowledged < end) break
  }
  return { writer, acknowledged }
}

/** How many calls a run without faults makes. */
async function countCalls(t: TestContext, run: (fs: FaultyFileSystem) => Promise<unknown>): Promise<number> {
  const { program } = setup(t)
  const { fs } = program()
  await run(fs)
  return fs.calls.length
}

test('whichever call fails once, the append rejects, nothing is lost, and the next try stores each event once', async t => {
  const calls = await countCalls(t, async fs => {
    const { writer } = await write(setup(t).program(fs).medium, 1)
    await writer.close()
  })
  assert.ok(calls > 40, `${calls} calls`)
  for (let nth = 1; nth <= calls; nth += 3) {
    const { path, files, program } = setup(t)
    const { fs, medium } = program()
    fs.inject({ nth, code: nth % 2 === 0 ? 'ENOSPC' : 'EIO' })
    const { writer, acknowledged } = await write(medium, 2)
    const hint = `call ${nth}: ${fs.calls[nth - 1]}`
    assert.equal(acknowledged, 9, hint)
    await writer.close().catch(() => writer.close())
    const log = await program().medium.read(id)
    assert.deepEqual(log?.events, all, hint)
    assert.deepEqual(log?.gaps, [], hint)
    // The last byte is that of the last frame.
    assert.equal((await program().medium.resume(id)).log.revision, log?.revision, hint)
    const left = files().filter(name => !['artifacts', 'lock', basename(path)].includes(name))
    assert.ok(
      left.every(name => name.startsWith('lock.')),
      `${hint} left ${left.join()}`,
    )
  }
})

test('wherever a program dies, the next one finds what was acknowledged, goes on, and no half-made copy stays', async t => {
  const calls = await countCalls(t, async fs => (await write(setup(t).program(fs).medium, 1)).writer.close())
  for (let nth = 1; nth <= calls; nth += 3) {
    const { path, files, program } = setup(t)
    const first = program()
    first.fs.inject({ nth, times: Infinity, code: 'EIO' })
    const { acknowledged } = await write(first.medium, 1)
    first.die()
    const hint = `died at call ${nth}: ${first.fs.calls[nth - 1]}`
    const { medium } = program()
    const rows = await medium.list()
    assert.ok(
      rows.every(row => 'header' in row),
      hint,
    )
    if (rows.length === 0) {
      assert.equal(acknowledged, 0, hint)
      await medium.sweep()
    }
    const { writer, length } = await reopen(medium, hint)
    assert.ok(length >= acknowledged && [0, 3, 7, 9].includes(length), `${hint}: ${length}`)
    if (length < 9) await writer.append(all.slice(length))
    await writer.close()
    assert.deepEqual((await program().medium.read(id))?.events, all, hint)
    const left = files().filter(name => !['artifacts', basename(path)].includes(name))
    assert.deepEqual(left, [], hint)
  }
})

async function reopen(medium: JsonlMedium, hint: string): Promise<{ writer: LogWriter; length: number }> {
  if ((await medium.revision(id)) === undefined) return { writer: medium.begin(header), length: 0 }
  const { log, writer } = await medium.resume(id)
  assert.deepEqual(log.events, all.slice(0, log.events.length), hint)
  assert.deepEqual(log.header, header, hint)
  await writer.mend()
  return { writer, length: log.events.length }
}

test('what is acknowledged has reached the disk, with the names that lead to it', async t => {
  const { program } = setup(t)
  const { fs, medium } = program()
  const writer = medium.begin(header)
  const during = async (run: () => Promise<unknown>): Promise<string> => {
    const { length } = fs.calls
    await run()
    const matters = ['file.write', 'file.sync', 'rename', 'syncFolder', 'mkdir', 'link']
    return fs.calls
      .slice(length)
      .filter(call => matters.includes(call))
      .join(' ')
  }
  const above = 'syncFolder syncFolder syncFolder syncFolder'
  const folders = `mkdir mkdir mkdir mkdir mkdir ${above}`
  const claim = 'file.write file.sync link syncFolder'
  const publish = 'file.write file.sync rename syncFolder'
  const first = await during(() => writer.append(all.slice(0, 3)))
  assert.equal(first, `${folders} ${claim} ${publish.replace('write', 'write file.write')}`)
  assert.equal(await during(() => writer.append(all.slice(3, 8))), 'file.write file.sync')
  assert.equal(
    await during(() => writer.append(all.slice(8))),
    `mkdir ${above} ${publish} file.write file.sync`,
  )
  await writer.close()
})

test('an artifact whose name was not made durable is made so when it is put again', async t => {
  const { program } = setup(t)
  const { fs, medium } = program()
  const writer = medium.begin(header)
  await writer.append(events.slice(0, 2))
  const bytes = Buffer.from('a picture')
  const { length } = fs.calls
  await writer.putArtifact(bytes, 'image/png')
  const folderSyncs = fs.calls.slice(length).filter(call => call === 'syncFolder').length
  const other = Buffer.from('another')
  fs.inject({ call: 'syncFolder', nth: folderSyncs, code: 'EMFILE' })
  await assert.rejects(writer.putArtifact(other, 'image/png'), { code: 'STORE_FAILED' })
  const again = fs.calls.length
  await writer.putArtifact(other, 'image/png')
  assert.equal(fs.calls.slice(again).filter(call => call === 'syncFolder').length, folderSyncs)
  await writer.close()
})

test('a log that cannot be looked at is not taken for a free place', async t => {
  const { program } = setup(t)
  const { writer } = await write(program().medium, 1)
  await writer.close()
  for (const code of ['EIO', 'EACCES', 'EMFILE']) {
    const { fs, medium } = program()
    fs.inject({ call: 'stat', nth: 1, times: Infinity, code })
    const other = medium.begin(header)
    await assert.rejects(other.append(events.slice(0, 2)), { code: 'STORE_FAILED' })
    fs.inject()
    await assert.rejects(other.append(events.slice(0, 2)), { code: 'SESSION_EXISTS' })
    await other.close()
  }
  assert.deepEqual((await program().medium.read(id))?.events, all)
})

test('a root that cannot be read is a failure of the store, and says of which session', async t => {
  const { program } = setup(t)
  const { fs, medium } = program()
  const { writer } = await write(medium, 1)
  await writer.close()
  fs.inject({ call: 'readdir', nth: 1, times: Infinity, code: 'EMFILE' })
  await assert.rejects(medium.resume(id), {
    code: 'STORE_FAILED',
    message: /^session "s1" cannot be looked for: too many files are open: \//,
  })
  fs.inject()
  await (await medium.resume(id)).writer.close()
})

test('writes that take only half of their bytes are gone on with', async t => {
  const { program } = setup(t)
  const { fs, medium } = program()
  fs.inject({ call: 'file.write', nth: 1, times: Infinity, code: 'SHORT' })
  const { writer } = await write(medium, 1)
  await writer.close()
  assert.deepEqual((await program().medium.read(id))?.events, all)
})

test('a write that fails half-way and cannot be taken back is told with both reasons, and taken back later', async t => {
  const { path, program } = setup(t)
  const { fs, medium } = program()
  const writer = medium.begin(header)
  await writer.append(all.slice(0, 3))
  const { size } = statSync(path)
  await failHalfWay(fs, writer)
  assert.ok(statSync(path).size > size)
  await writer.append(all.slice(3))
  await writer.close()
  assert.deepEqual((await program().medium.read(id))?.events, all)
})

test('a program that dies with a write half done leaves a tail, which the next one cuts off and keeps', async t => {
  const { path, files, program } = setup(t)
  const first = program()
  const writer = first.medium.begin(header)
  await writer.append(all.slice(0, 3))
  const { size } = statSync(path)
  await failHalfWay(first.fs, writer)
  first.die()
  const bytes = readFileSync(path)
  const { medium } = program()
  assert.deepEqual((await medium.read(id))?.events, all.slice(0, 3))
  assert.deepEqual(readFileSync(path), bytes)
  const resumed = await medium.resume(id)
  const copy = `torn-at-${size}-1700000000000.bin`
  assert.equal(
    await resumed.writer.mend(),
    `${bytes.length - size} bytes at the end of the log were cut off (the last frame is incomplete); ${join(dirname(path), copy)} keeps them`,
  )
  assert.equal(await resumed.writer.mend(), undefined)
  assert.ok(files().includes(copy))
  assert.deepEqual(readFileSync(join(dirname(path), copy)), bytes.subarray(size))
  assert.equal(statSync(path).size, size)
  await resumed.writer.append(all.slice(3))
  await resumed.writer.close()
  assert.deepEqual((await medium.read(id))?.events, all)
})

/** Half of a write lands, the rest fails, and so does the truncation. */
async function failHalfWay(fs: FaultyFileSystem, writer: LogWriter): Promise<void> {
  fs.inject(
    { call: 'file.write', nth: 1, code: 'SHORT' },
    { call: 'file.write', nth: 2, code: 'ENOSPC' },
    { call: 'file.truncate', nth: 1, code: 'EIO' },
  )
  await assert.rejects(writer.append(all.slice(3, 7)), (error: Error) => {
    assert.ok(error.cause instanceof AggregateError, String(error.cause))
    assert.deepEqual(
      error.cause.errors.map((each: { code: string }) => each.code),
      ['ENOSPC', 'EIO'],
    )
    assert.match(error.message, /^session "s1" cannot be stored: no space is left on the device: \//)
    return true
  })
}

test('a lost acknowledgement of the disk is a failure, and the same bytes are written anew', async t => {
  const { program } = setup(t)
  const { fs, medium } = program()
  const writer = medium.begin(header)
  await writer.append(all.slice(0, 3))
  fs.inject({ call: 'file.sync', nth: 1, code: 'EIO' })
  await assert.rejects(writer.append(all.slice(3)), { code: 'STORE_FAILED', message: /the device failed/ })
  assert.equal((await program().medium.read(id))?.events.length, 3)
  await writer.append(all.slice(3))
  await writer.close()
  assert.deepEqual((await program().medium.read(id))?.events, all)
})

test('where nothing may be written, that is said, and reading goes on', async t => {
  const { path, program } = setup(t)
  const { writer } = await write(program().medium, 1)
  await writer.close()
  for (const code of ['EROFS', 'EACCES']) {
    const { fs, medium } = program()
    for (const call of ['mkdir', 'open', 'link', 'rename'] as const) {
      fs.inject({ call, nth: 1, times: Infinity, code })
      const other = medium.begin({ ...header, id: SessionId(`new-${call}-${code}`) })
      await assert.rejects(other.append(all), {
        code: 'STORE_FAILED',
        message:
          /^session "new-\w+-\w+" cannot be stored: (the file system is read-only|permission is denied): \//,
      })
    }
    fs.inject({ call: 'link', nth: 1, times: Infinity, code })
    await assert.rejects(medium.resume(id), {
      code: 'STORE_FAILED',
      message: /^session "s1" cannot be continued: (the|permission) /,
    })
    assert.deepEqual((await medium.read(id))?.events, all)
  }
  assert.ok(statSync(path).size > 0)
})

test('a log that another program changed in spite of the lock is not written any more', async t => {
  const { path, program } = setup(t)
  const { medium } = program()
  const writer = medium.begin(header)
  await writer.append(all.slice(0, 3))
  appendFileSync(path, 'x')
  await assert.rejects(writer.append(all.slice(3)), {
    code: 'STALE_APPEND',
    message: /another program changed/,
  })
  assert.equal(readFileSync(path).at(-1), 'x'.charCodeAt(0))
  await writer.close()
})

test('a lock that somebody removed by hand is laid again, and a log that somebody removed is missed', async t => {
  const { path, files, program } = setup(t)
  const writer = program().medium.begin(header)
  await writer.append(all.slice(0, 3))
  rmSync(join(dirname(path), 'lock'))
  await writer.append(all.slice(3, 7))
  assert.ok(files().includes('lock'))
  rmSync(path)
  await assert.rejects(writer.append(all.slice(7)), {
    code: 'STORE_FAILED',
    message: /its file or folder is gone/,
  })
  await writer.close()
})

test('a text that stands beside the log is part of it: without it the log is damaged there', async t => {
  const { path, program } = setup(t)
  const { medium } = program()
  const writer = medium.begin(header)
  const order = [long, ...all.slice(0, 8)].map((event, seq) => ({ ...event, seq })) as SessionEvent[]
  await writer.append(order.slice(0, 4))
  await writer.append(order.slice(4))
  await writer.close()
  assert.deepEqual((await medium.read(id))?.events, order)
  const folder = join(dirname(path), 'artifacts')
  const [name = ''] = readdirSync(folder)
  writeFileSync(join(folder, name), 'another text')
  const sha256 = name.replace('.zst', '')
  const others: readonly (() => unknown)[] = [
    () => undefined,
    () => mkdirSync(join(folder, name)),
    () => execFileSync('mkfifo', [join(folder, name)], { timeout: 5000, killSignal: 'SIGKILL' }),
  ]
  for (const put of [undefined, ...others]) {
    if (put !== undefined) rmSync(join(folder, name), { recursive: true, force: true })
    put?.()
    const log = await medium.read(id)
    assert.deepEqual(log?.events, [])
    assert.deepEqual(
      log?.gaps.map(({ fromSeq, toSeq, reason }) => [fromSeq, toSeq, reason]),
      [[0, 0, `a text of event 0 is missing or damaged: artifact ${sha256}`]],
    )
    assert.deepEqual(log?.gaps[0]?.events, order.slice(1))
    await assert.rejects(medium.resume(id), { code: 'SESSION_DAMAGED' })
  }
})
