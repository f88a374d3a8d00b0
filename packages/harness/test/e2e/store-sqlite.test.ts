import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import type { SessionHolder } from '../../src/core/session/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { storeSqlite } from '../../src/plugins/store-sqlite/index.ts'
import { logOf, testStore, userFact } from '../../src/testing/index.ts'
import { headerOf } from '../../src/testing/contracts/store-samples.ts'
import { setUp } from '../../src/plugins/store-sqlite/set-up.ts'

const id = SessionId('s1')
const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', tmpdir()]).status === 0
const kills = 30
const longestMs = 60_000

testStore('store-sqlite without write-ahead log', t => setUp(t, { journalMode: 'delete' }))

function tempFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'store-sqlite-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Goes on with the session, without end; tells how many events are durable after each write. */
const appendForever = `
  import fs from 'node:fs'
  import { MessageId, SessionId } from '@dsh/protocol'
  import { Context } from '@dsh/harness/kernel'
  import { SessionStore } from '@dsh/harness/session'
  import { storeSqlite } from '@dsh/harness/plugins/store-sqlite'
  const [path] = process.argv.slice(1)
  const id = SessionId('s1')
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeSqlite, { path })
  const isStored = (await ctx.sessionPersistence.list()).length > 0
  const session = isStored ? (await ctx.sessionPersistence.prepare(id)).session : ctx.sessions.prepare(id)
  ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  for (let batch = 1; ; batch += 1) {
    for (let count = batch % 5; count >= 0; count -= 1) {
      const text = session.seq + ' ' + 'x'.repeat(batch % 17 === 0 ? 70_000 : (batch * 131) % 3000)
      const message = { id: MessageId('m' + session.seq), role: 'user', content: [{ type: 'text', text }], source: { kind: 'user' } }
      session.append('user/message', message, { surfaceOp: 'append' })
    }
    const { length } = session
    await ctx.sessions.flush(session)
    fs.writeSync(1, length + '\\n')
  }
`

/** Lets a program append until it has told of `acks` writes, kills it, and gives how many events it was told are durable. */
async function appendAndDie(path: string, acks: number): Promise<number> {
  const args = ['--conditions=dsh-source', '--input-type=module', '-e', appendForever, path]
  const child = spawn(process.execPath, args, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: longestMs,
    killSignal: 'SIGKILL',
  })
  const ended = once(child, 'exit')
  let acknowledged = 0
  let left = acks
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged = Number(line)
    left -= 1
    if (left === 0) child.kill('SIGKILL')
  }
  await ended
  return acknowledged
}

async function storedEvents(path: string): Promise<readonly SessionEvent[]> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeSqlite, { path })
  const { events, readOnly } = await ctx.sessionPersistence.readFrom(id, 0)
  const { problems } = await ctx.sessionPersistence.verify(id)
  assert.deepEqual([problems, readOnly], [[], undefined])
  await ctx.dispose()
  return events
}

test(`of ${kills} programs that are killed while they write one session after another, none loses what was durable`, async t => {
  const path = join(tempFolder(t), 'sessions.sqlite')
  let before: readonly SessionEvent[] = []
  for (let kill = 0; kill < kills; kill += 1) {
    const acknowledged = await appendAndDie(path, 1 + ((kill * 7) % 11))
    assert.ok(acknowledged > before.length)
    const events = await storedEvents(path)
    assert.ok(events.length >= acknowledged, `${events.length} of ${acknowledged}`)
    assert.deepEqual(events.slice(0, before.length), before)
    assert.deepEqual(
      events.map(({ seq }) => seq),
      [...events.keys()],
    )
    before = events
  }
})

test('whatever a crash leaves of the write-ahead log, all that was written before it is there', async t => {
  const place = setUp(t)
  const events = logOf(...Array.from({ length: 30 }, (_, at) => ['user/message', userFact(`${at}`)] as const))
  const writer = place.open().begin(headerOf('s1'))
  for (let at = 0; at < 20; at += 5) await writer.append(events.slice(at, at + 5))
  const log = `${place.path}-wal`
  const start = statSync(log).size
  await writer.append(events.slice(20))
  const [sound, ahead] = [readFileSync(place.path), readFileSync(log)]
  const ends = [
    () => Buffer.alloc(0),
    (tail: Buffer) => Buffer.alloc(tail.length),
    (tail: Buffer) => randomBytes(tail.length),
    () => Buffer.alloc(4096),
  ]
  let whole = 0
  for (let at = start; at <= ahead.length; at += 101) {
    for (const [index, end] of ends.entries()) {
      const copy = join(place.folder, `${at}-${index}.sqlite`)
      writeFileSync(copy, sound, { mode: 0o600 })
      writeFileSync(`${copy}-wal`, Buffer.concat([ahead.subarray(0, at), end(ahead.subarray(at))]), {
        mode: 0o600,
      })
      const medium = place.open({ path: copy })
      const { problems } = await medium.verify(id)
      const found = (await medium.read(id))?.events ?? []
      assert.deepEqual(problems, [])
      assert.ok([20, 30].includes(found.length), `${found.length} events with byte ${at}`)
      assert.deepEqual(found, events.slice(0, found.length))
      const next = await medium.resume(id, takeAnyway(await medium.holder(id)))
      await next.writer.append(events.slice(found.length, found.length + 1))
      await next.writer.close()
      await medium.close()
      if (found.length === 30) whole += 1
      for (const name of ['', '-wal', '-shm']) rmSync(`${copy}${name}`, { force: true })
    }
  }
  assert.ok(whole < ends.length * 2, `${whole} states with all events`)
  await writer.close()
})

/** The writer of the test lives, and the copy names it. */
function takeAnyway(holder: SessionHolder | undefined): { readonly takeFrom?: SessionHolder } {
  return holder === undefined ? {} : { takeFrom: holder }
}

const transaction = `
  import { DatabaseSync } from 'node:sqlite'
  import { once } from 'node:events'
  const database = new DatabaseSync(process.argv[1])
  database.exec('BEGIN IMMEDIATE')
  console.log('begun')
  await once(process.stdin, 'data')
  database.exec('COMMIT')
  process.exit()
`

test('a program waits for the transaction of another, and writes when that is over', async t => {
  const place = setUp(t)
  const events = logOf(['turn/start', { turn: 1 }], ['step/start', { turn: 1, step: 1 }])
  const writer = place.open({ busyTimeoutMs: longestMs }).begin(headerOf('s1'))
  await writer.append(events.slice(0, 1))
  const args = ['--input-type=module', '-e', transaction, place.path]
  const options = { timeout: longestMs, killSignal: 'SIGKILL' } as const
  const other = spawn(process.execPath, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] })
  await once(other.stdout, 'data')
  const hasty = place.open({ busyTimeoutMs: 0 }).begin(headerOf('s2'))
  await assert.rejects(hasty.append(events), {
    code: 'STORE_FAILED',
    message: /another program keeps the database locked/,
  })
  const written = writer.append(events.slice(1))
  assert.equal((await place.open().read(id))?.events.length, 1)
  other.stdin.write('go\n')
  await written
  await writer.close()
  assert.deepEqual((await place.open().read(id))?.events, events)
})

/** Runs `script` with the path of a database below `folder`, which `mount` makes. */
function runMounted(folder: string, mount: string, script: string): unknown {
  const shell = `${mount} && exec "$2" --conditions=dsh-source --input-type=module -e "$3" "$1"`
  const args = ['-m', 'sh', '-c', shell, 'sh', folder, process.execPath, script]
  const options = { cwd: import.meta.dirname, encoding: 'utf8', timeout: longestMs } as const
  return JSON.parse(execFileSync('unshare', args, { ...options, killSignal: 'SIGKILL' }))
}

const open = `
  import fs from 'node:fs'
  import { execFileSync } from 'node:child_process'
  import { randomBytes } from 'node:crypto'
  import { SessionId } from '@dsh/protocol'
  import { Context } from '@dsh/harness/kernel'
  import { SessionStore } from '@dsh/harness/session'
  import { storeSqlite } from '@dsh/harness/plugins/store-sqlite'
  import { userFact } from '@dsh/harness/testing'
  const [folder] = process.argv.slice(1)
  const path = folder + '/sessions.sqlite'
  const id = SessionId('s1')
  const open = async () => {
    const ctx = new Context()
    await ctx.plugin(SessionStore)
    await ctx.plugin(storeSqlite, { path })
    return ctx
  }
  const begin = ctx => ctx.sessions.create(id, { meta: { cwd: '/srv' } })
  const say = async (ctx, session, text) => {
    if (text !== undefined) session.append('user/message', userFact(text), { surfaceOp: 'append' })
    return ctx.sessions.flush(session).then(() => 'stored', error => error.message)
  }
`

const fullDisk = `${open}
  const told = []
  const ctx = await open()
  const session = begin(ctx)
  told.push(await say(ctx, session, 'one'))
  fs.writeFileSync(folder + '/filler', '')
  try { for (;;) fs.appendFileSync(folder + '/filler', 'x'.repeat(4096)) } catch (error) { told.push(error.code) }
  told.push(await say(ctx, session, randomBytes(100_000).toString('hex')))
  told.push(await say(ctx, session))
  const other = await open()
  told.push((await other.sessionPersistence.readFrom(id, 0)).events.length)
  fs.rmSync(folder + '/filler')
  told.push(await say(ctx, session))
  told.push(await say(ctx, session, 'three'))
  told.push((await other.sessionPersistence.readFrom(id, 0)).events.length)
  told.push((await other.sessionPersistence.verify(id)).problems)
  await other.dispose()
  await ctx.dispose()
  console.log(JSON.stringify(told))
`

test(
  'a full disk fails the write, leaves the log sound, and is forgotten once there is room',
  {
    skip: !canMount,
  },
  t => {
    const folder = tempFolder(t)
    const told = runMounted(folder, 'mount -t tmpfs -o size=1m,mode=700 none "$1"', fullDisk)
    const full = `session "s1" cannot be stored: no space is left on the device: ${folder}/sessions.sqlite`
    assert.deepEqual(told, ['stored', 'ENOSPC', full, full, 1, 'stored', 'stored', 3, []])
  },
)

const readOnly = `${open}
  const told = []
  const remount = how => execFileSync('mount', ['-o', 'remount,' + how, folder])
  const ctx = await open()
  const session = begin(ctx)
  await say(ctx, session, 'one')
  await say(ctx, session, 'two')
  fs.mkdirSync(folder + '/crashed')
  for (const end of ['', '-wal']) fs.copyFileSync(path + end, folder + '/crashed/sessions.sqlite' + end)
  await ctx.dispose()
  remount('ro')
  const next = await open()
  const { events } = await next.sessionPersistence.inspect(id)
  told.push(events.length, (await next.sessionPersistence.list()).length)
  told.push(await next.sessionPersistence.prepare(id).then(() => 'prepared', error => error.message))
  told.push(await say(next, next.sessions.create(SessionId('s2')), 'hi'))
  await next.dispose().catch(() => {})
  const crashed = new Context()
  await crashed.plugin(SessionStore)
  await crashed.plugin(storeSqlite, { path: folder + '/crashed/sessions.sqlite' })
  told.push(await crashed.sessionPersistence.inspect(id).then(() => 'read', error => error.message))
  await crashed.dispose()
  remount('rw')
  const last = await open()
  const preparation = await last.sessionPersistence.prepare(id)
  told.push(preparation.session.length)
  preparation[Symbol.dispose]()
  await last.dispose()
  console.log(JSON.stringify(told))
`

test('a home that cannot be written can be read, and says why nothing is stored', { skip: !canMount }, t => {
  const folder = tempFolder(t)
  const told = runMounted(folder, 'mount -t tmpfs -o size=4m,mode=700 none "$1"', readOnly)
  const path = `${folder}/sessions.sqlite`
  assert.deepEqual(told, [
    2,
    1,
    `session "s1" cannot be continued: the file system is read-only: ${path}`,
    `session "s2" cannot be stored: the file system is read-only: ${path}`,
    `the last writes stand in ${folder}/crashed/sessions.sqlite-wal and cannot be read where nothing may be written; copy both files elsewhere`,
    3,
  ])
})
