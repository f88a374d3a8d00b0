import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { SessionId } from '@dsh/protocol'
import { logOf } from '../../testing/index.ts'
import { headerOf, turnOf } from '../../testing/contracts/store-samples.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import { setUp, storeLog } from './set-up.ts'

const run = promisify(execFile)

const id = SessionId('s1')
const header = headerOf('s1')
const events = logOf(...turnOf('a'), ...turnOf('b', 2))

/** A holder as a dead program leaves it. */
async function deadHolder(): Promise<string> {
  const { stdout } = await run(process.execPath, ['-p', 'process.pid'])
  const own = createLocalProcesses().self()
  return JSON.stringify({ ...own, pid: Number(stdout), start: '1', since: 1, nonce: 'dead' })
}

test('an append that does not continue what is stored changes nothing, whoever wrote it', async t => {
  const place = setUp(t)
  const writer = place.open().begin(header)
  await writer.append(events.slice(0, 4))
  // As if the row of the holder had been lost, and another program had gone on.
  place.tamper('UPDATE sessions SET holder = NULL')
  const other = await place.open().resume(id)
  await other.writer.append(events.slice(4, 6))
  await other.writer.close()
  const stale = [{ ...events[4], time: 1 }] as typeof events
  const message = /^another program changed the log of session "s1" \(6 events where 4 were left\)/
  await assert.rejects(writer.append(stale), { code: 'STALE_APPEND', message })
  await assert.rejects(writer.append(stale), { code: 'STALE_APPEND' })
  await writer.close()
  assert.deepEqual((await place.open().read(id))?.events, events.slice(0, 6))
})

test('the database itself refuses a second event with a seq, and one without its session', async t => {
  const place = setUp(t)
  await storeLog(place, header, events)
  const database = new DatabaseSync(place.path)
  t.after(() => database.close())
  const insert = database.prepare("INSERT INTO events VALUES (?, ?, '{}', '')")
  assert.throws(() => insert.run(1, 3), /UNIQUE constraint failed/)
  assert.throws(() => insert.run(99, 0), /FOREIGN KEY constraint failed/)
})

test('a right that nobody has any more is taken again by whoever wrote last', async t => {
  const place = setUp(t)
  const writer = place.open().begin(header)
  await writer.append(events.slice(0, 4))
  place.tamper('UPDATE sessions SET holder = NULL')
  await writer.append(events.slice(4))
  assert.equal((await place.open().holder(id))?.pid, process.pid)
  await assert.rejects(place.open().resume(id), { code: 'SESSION_HELD' })
  await writer.close()
  assert.equal(await place.open().holder(id), undefined)
})

test('a session whose program is dead is free, one whose holder cannot be read is not', async t => {
  const place = setUp(t)
  await storeLog(place, header, events.slice(0, 6))
  const text = await deadHolder()
  place.tamper(`UPDATE sessions SET holder = '${text}'`)
  assert.equal(await place.open().holder(id), undefined)
  const { writer } = await place.open().resume(id)
  await writer.append(events.slice(6))
  await writer.close()
  place.tamper("UPDATE sessions SET holder = 'somebody'")
  const holder = await place.open().holder(id)
  assert.deepEqual(holder, { pid: 0, since: 0, host: '', nonce: '' })
  const message = 'the session is open elsewhere, by whom cannot be read'
  await assert.rejects(place.open().resume(id), { code: 'SESSION_HELD', message })
  const taken = await place.open().resume(id, { takeFrom: holder })
  await taken.writer.close()
})

test('what a dead program kept for a session without events is swept, and nothing else', async t => {
  const place = setUp(t)
  await storeLog(place, header, events)
  await place
    .open()
    .begin(headerOf('living'))
    .putArtifact(new Uint8Array([1]), 'image/png')
  await place
    .open()
    .begin(headerOf('dead'))
    .putArtifact(new Uint8Array([2]), 'image/png')
  const text = await deadHolder()
  place.tamper(`UPDATE sessions SET holder = '${text}' WHERE id IN ('dead', 's1')`)
  await place.open().sweep()
  const database = new DatabaseSync(place.path)
  t.after(() => database.close())
  const ids = database.prepare('SELECT id FROM sessions ORDER BY id').all()
  assert.deepEqual(
    ids.map(row => row['id']),
    ['living', 's1'],
  )
  assert.equal(database.prepare('SELECT count(*) AS n FROM artifacts').get()?.['n'], 1)
})

test('sweeping makes nothing where there is nothing', async t => {
  const { folder, open } = setUp(t)
  await open().sweep()
  assert.deepEqual(readdirSync(folder), [])
})

test('a write waits for the transaction of another program, and goes on meanwhile', async t => {
  const place = setUp(t)
  const writer = place.open().begin(header)
  await writer.append(events.slice(0, 3))
  const other = new DatabaseSync(place.path)
  other.exec('BEGIN IMMEDIATE')
  let isDone = false
  const written = writer.append(events.slice(3)).then(() => {
    isDone = true
  })
  // It cannot come to an end before the other does: each turn of the loop lets it try.
  for (let turn = 0; turn < 50; turn += 1) await new Promise(resolve => setImmediate(resolve))
  assert.equal(isDone, false)
  assert.equal((await place.open().read(id))?.events.length, 3)
  other.exec('COMMIT')
  other.close()
  await written
  await writer.close()
  assert.deepEqual((await place.open().read(id))?.events, events)
})

test('a write that waited as long as it may is refused, and can be made later', async t => {
  const place = setUp(t)
  const writer = place.open({ busyTimeoutMs: 0 }).begin(header)
  await writer.append(events.slice(0, 3))
  const other = new DatabaseSync(place.path)
  other.exec('BEGIN IMMEDIATE')
  const message = `session "s1" cannot be stored: another program keeps the database locked: ${place.path}`
  await assert.rejects(writer.append(events.slice(3)), { code: 'STORE_FAILED', message })
  other.exec('COMMIT')
  other.close()
  await writer.append(events.slice(3))
  await writer.close()
  assert.deepEqual((await place.open().read(id))?.events, events)
})

test('without a write-ahead log a write waits for whoever reads, and is whole', async t => {
  const place = setUp(t, { journalMode: 'delete' })
  const writer = place.open().begin(header)
  await writer.append(events.slice(0, 3))
  const reader = new DatabaseSync(place.path)
  reader.exec('BEGIN; SELECT * FROM events')
  const written = writer.append(events.slice(3))
  for (let turn = 0; turn < 50; turn += 1) await new Promise(resolve => setImmediate(resolve))
  assert.equal(reader.prepare('SELECT count(*) AS n FROM events').get()?.['n'], 3)
  reader.exec('COMMIT')
  reader.close()
  await written
  await writer.close()
  assert.deepEqual((await place.open().read(id))?.events, events)
})

test('two programs that write sessions of their own lose nothing', async t => {
  const place = setUp(t)
  const ids = ['a', 'b', 'c']
  await Promise.all(ids.map(own => storeLog(place, headerOf(own), events, 1)))
  for (const own of ids) {
    assert.deepEqual((await place.open().read(SessionId(own)))?.events, events)
    assert.deepEqual((await place.open().verify(SessionId(own))).problems, [])
  }
})

test('of two writers that begin one session, one has it and the other is told so', async t => {
  const place = setUp(t)
  const writers = [place.open().begin(header), place.open().begin(header)]
  const results = await Promise.allSettled(writers.map(writer => writer.append(events)))
  assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  const refused = results.find(result => result.status === 'rejected')
  assert.equal(refused?.reason.code, 'SESSION_EXISTS')
  for (const writer of writers) await writer.close()
  assert.deepEqual((await place.open().read(id))?.events, events)
})

test('reading writes nothing to the database, nor to what another program left beside it', async t => {
  const place = setUp(t)
  const writer = place.open().begin(header)
  await writer.append(events)
  const files = [place.path, `${place.path}-wal`]
  const before = files.map(file => [statSync(file).size, statSync(file).mtimeMs])
  const medium = place.open()
  await medium.read(id)
  await medium.list()
  await medium.verify(id)
  await medium.revision(id)
  await medium.close()
  assert.deepEqual(
    files.map(file => [statSync(file).size, statSync(file).mtimeMs]),
    before,
  )
  await writer.close()
})

test('what was removed is no longer in the file', async t => {
  const place = setUp(t)
  await storeLog(place, header, logOf(...turnOf('a secret that nobody may read')))
  const medium = place.open()
  assert.equal(await medium.remove(id), true)
  await medium.close()
  assert.equal(existsSync(`${place.path}-wal`), false)
  const { stdout } = await run('grep', ['-c', 'a secret that', place.path]).catch(error => error)
  assert.equal(stdout.trim(), '0')
})
