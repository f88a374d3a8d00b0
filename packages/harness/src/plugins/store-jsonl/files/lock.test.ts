import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { faultyFileSystem } from '../../../testing/index.ts'
import { createLocalProcesses, isProvablyDead } from '../../persistence/index.ts'
import type { ProcessIdentity, ProcessState } from '../../persistence/index.ts'
import { localFileSystem } from '../local.ts'
import { acquireLock, isAbandoned, lockHolder } from './lock.ts'
import type { LockHost } from './lock.ts'

const me: ProcessIdentity = { pid: 10, start: '100', boot: 'b1', host: 'h1', space: 'p1' }

/** A folder, and programs in it with whatever identity, which see the processes of `alive`. */
function setup(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'lock-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'lock')
  const alive = new Map<number, ProcessState>()
  const look = (pid: number): ProcessState => alive.get(pid) ?? 'gone'
  const program = (identity: Partial<ProcessIdentity> = {}): LockHost => {
    const self = { ...me, ...identity }
    alive.set(self.pid, { start: self.start })
    const processes = {
      self: () => self,
      isDead: (other: ProcessIdentity) => isProvablyDead(other, self, look),
    }
    return { fs: localFileSystem, processes, now: () => 1_700_000_000_000 }
  }
  const files = (): readonly string[] => readdirSync(folder).toSorted()
  return { path, folder, alive, program, files }
}

test('a lock says who has it, and goes with its release', async t => {
  const { path, program, files } = setup(t)
  const lock = await acquireLock(path, program())
  const text = JSON.parse(readFileSync(path, 'utf8')) as object
  assert.deepEqual({ ...text, nonce: '' }, { ...me, since: 1_700_000_000_000, nonce: '' })
  assert.equal((await lockHolder(path, program({ pid: 11 })))?.pid, 10)
  await lock.check()
  assert.deepEqual(files(), ['lock'])
  await lock.release()
  await lock.release()
  assert.deepEqual(files(), [])
})

test('a lock of a program whose clock stands before 1970 is taken over like any other once it is dead', async t => {
  const { path, program, alive } = setup(t)
  await acquireLock(path, { ...program(), now: () => -1 })
  await assert.rejects(acquireLock(path, program({ pid: 11 })), {
    code: 'SESSION_HELD',
    message: 'the session is open in another program: process 10 since 1969-12-31T23:59:59.999Z',
  })
  alive.set(10, 'gone')
  await (await acquireLock(path, program({ pid: 11 }))).release()
})

test("a lock that could not be removed when it was given back is in nobody's way", async t => {
  const { path, program, files } = setup(t)
  const host = program()
  const fs = faultyFileSystem(host.fs)
  const lock = await acquireLock(path, { ...host, fs })
  for (const call of ['read', 'unlink'] as const) {
    fs.inject({ call, nth: 1, code: 'EIO' })
    await assert.rejects(lock.release(), { code: 'EIO' })
  }
  assert.deepEqual(files(), ['lock'])
  assert.equal(await lockHolder(path, host), undefined)
  const next = await acquireLock(path, host)
  await assert.rejects(lock.check(), { code: 'SESSION_HELD' })
  await next.release()
  assert.deepEqual(files(), [])
})

test('whoever comes second is told who has it, since when', async t => {
  const { path, program, files } = setup(t)
  await acquireLock(path, program())
  await assert.rejects(acquireLock(path, program({ pid: 11 })), {
    code: 'SESSION_HELD',
    message: 'the session is open in another program: process 10 since 2023-11-14T22:13:20.000Z',
  })
  assert.deepEqual(files(), ['lock'])
})

test('a lock is taken over from an owner that is known to be dead, and from no other', async t => {
  const cases: readonly (readonly [
    why: string,
    owner: Partial<ProcessIdentity>,
    now: ProcessState,
    isDead: boolean,
  ])[] = [
    ['it runs', {}, { start: '100' }, false],
    ['it is gone', {}, 'gone', true],
    ['its pid was given again', {}, { start: '200' }, true],
    ['nothing can be said', {}, 'unknown', false],
    ['the machine started again', { boot: 'b0' }, { start: '100' }, true],
    ['another machine', { host: 'h2', boot: 'b2' }, 'gone', false],
    ['another container', { space: 'p2' }, 'gone', false],
    ['no boot is known', { boot: '' }, 'gone', false],
  ]
  for (const [why, owner, now, isDead] of cases) {
    const { path, alive, program } = setup(t)
    const lock = await acquireLock(path, program({ pid: 20, ...owner }))
    alive.set(20, now)
    const second = program()
    assert.equal((await lockHolder(path, second)) === undefined, isDead, why)
    if (isDead) {
      await acquireLock(path, second)
      await assert.rejects(lock.check(), { code: 'SESSION_HELD' }, why)
    } else {
      await assert.rejects(acquireLock(path, second), { code: 'SESSION_HELD' }, why)
      await lock.check()
    }
  }
})

test('of many that see a dead owner at once, one gets the lock', async t => {
  for (let round = 0; round < 4; round += 1) {
    const { path, alive, program, files } = setup(t)
    await acquireLock(path, program({ pid: 20 }))
    alive.set(20, 'gone')
    const tries = [...Array(8).keys()].map(index => acquireLock(path, program({ pid: 30 + index })))
    const got = (await Promise.allSettled(tries)).filter(({ status }) => status === 'fulfilled')
    assert.equal(got.length, 1)
    assert.deepEqual(files(), ['lock'])
  }
})

test('claims that dead programs left are no obstacle and are removed', async t => {
  const { path, alive, program, files } = setup(t)
  const dead = program({ pid: 20 })
  await acquireLock(path, dead)
  writeFileSync(`${path}.left`, readFileSync(path))
  alive.set(20, 'gone')
  await acquireLock(path, program())
  assert.deepEqual(files(), ['lock'])
})

test('a claim of a living program is waited for, then respected', async t => {
  const { path, alive, program } = setup(t)
  await acquireLock(path, program({ pid: 20 }))
  alive.set(20, 'gone')
  const other = JSON.stringify({ ...me, pid: 21, since: 1, nonce: 'other' })
  program({ pid: 21 })
  writeFileSync(`${path}.other`, other)
  await assert.rejects(acquireLock(path, program()), { code: 'SESSION_HELD' })
})

test('a lock that names nobody is kept, and a person can still have it taken', async t => {
  const { path, program } = setup(t)
  for (const text of ['', 'garbage', '{"pid":"ten"}']) {
    writeFileSync(path, text)
    assert.equal(await isAbandoned(path, program()), false)
    await assert.rejects(acquireLock(path, program()), {
      code: 'SESSION_HELD',
      message: `the session is open elsewhere, by whom cannot be read: ${path}`,
    })
    const holder = await lockHolder(path, program())
    assert.ok(holder !== undefined)
    const lock = await acquireLock(path, program(), { from: holder })
    await lock.release()
  }
})

test('what lies where a lock should and is no file keeps writers out at once, and no reader', async t => {
  const { path, program, files } = setup(t)
  const kinds: readonly (readonly [what: string, make: (at: string) => unknown])[] = [
    ['folder', at => mkdirSync(at)],
    ['pipe', at => execFileSync('mkfifo', [at], { timeout: 5000, killSignal: 'SIGKILL' })],
    ['link to itself', at => symlinkSync(at, at)],
    ['link to nothing', at => symlinkSync(`${at}-gone`, at)],
  ]
  for (const [what, make] of kinds) {
    make(path)
    make(`${path}.claim`)
    if (what !== 'link to nothing') assert.equal((await lockHolder(path, program()))?.pid, 0, what)
    assert.equal(await isAbandoned(path, program()), false, what)
    await assert.rejects(
      acquireLock(path, program()),
      {
        code: 'SESSION_HELD',
        message: `the session is open elsewhere, by whom cannot be read: ${path}`,
        lock: path,
      },
      what,
    )
    rmSync(path, { recursive: true })
    await (await acquireLock(path, program())).release()
    rmSync(`${path}.claim`, { recursive: true, force: true })
    assert.deepEqual(files(), [], what)
  }
})

test('a lock that a program died writing is free once all that claimed it are dead, and no sooner', async t => {
  const { path, alive, program, files } = setup(t)
  const claimOf = (pid: number): void => {
    program({ pid })
    writeFileSync(`${path}.${pid}`, JSON.stringify({ ...me, pid, since: 1, nonce: `${pid}` }))
  }
  for (const text of ['', '{"pid":20,"star']) {
    writeFileSync(path, text)
    claimOf(20)
    claimOf(21)
    alive.set(20, 'gone')
    await assert.rejects(acquireLock(path, program()), { code: 'SESSION_HELD' })
    assert.deepEqual(
      [await isAbandoned(path, program()), (await lockHolder(path, program()))?.pid],
      [false, 0],
    )
    alive.set(21, 'gone')
    assert.deepEqual(
      [await isAbandoned(path, program()), await lockHolder(path, program())],
      [true, undefined],
    )
    const lock = await acquireLock(path, program())
    assert.deepEqual(files(), ['lock'])
    await lock.release()
  }
  writeFileSync(path, '{"what":"another program knows"}')
  claimOf(20)
  alive.set(20, 'gone')
  await assert.rejects(acquireLock(path, program()), { code: 'SESSION_HELD' })
})

test('a lock that is gone or another is not released by whoever had it', async t => {
  const { path, program, files } = setup(t)
  const lock = await acquireLock(path, program())
  rmSync(path)
  await assert.rejects(lock.check(), { code: 'LOCK_LOST' })
  const other = await acquireLock(path, program({ pid: 11 }))
  await assert.rejects(lock.check(), { code: 'SESSION_HELD' })
  await lock.release()
  await other.check()
  assert.deepEqual(files(), ['lock'])
})

test('where a file system has no links, the lock is made in two steps', async t => {
  const { path, program, files } = setup(t)
  const fs = faultyFileSystem(localFileSystem)
  fs.inject({ call: 'link', nth: 1, times: Infinity, code: 'ENOTSUP' })
  const lock = await acquireLock(path, { ...program(), fs })
  await assert.rejects(acquireLock(path, { ...program({ pid: 11 }), fs }), { code: 'SESSION_HELD' })
  await lock.release()
  assert.deepEqual(files(), [])
})

test('a failing file system leaves no claim behind', async t => {
  const { path, program, files } = setup(t)
  const fs = faultyFileSystem(localFileSystem)
  for (const call of ['link', 'file.sync', 'file.write'] as const) {
    fs.inject({ call, nth: 1, code: 'EIO' })
    await assert.rejects(acquireLock(path, { ...program(), fs }), { code: 'EIO' })
    assert.deepEqual(files(), [])
  }
})

test('this very process is alive, and one that never was is dead', () => {
  const processes = createLocalProcesses()
  const self = processes.self()
  assert.equal(self.pid, process.pid)
  assert.equal(processes.isDead(self), false)
  assert.equal(processes.isDead({ ...self, pid: 2 ** 22 + 1 }), true)
  if (process.platform === 'linux') assert.equal(processes.isDead({ ...self, start: '1' }), true)
})
