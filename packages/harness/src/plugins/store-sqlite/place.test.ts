import assert from 'node:assert/strict'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { SessionStore } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import { logOf, userFact } from '../../testing/index.ts'
import { headerOf, turnOf } from '../../testing/contracts/store-samples.ts'
import { Database } from './database.ts'
import { storeSqlite } from './index.ts'
import { setUp, storeLog } from './set-up.ts'

const id = SessionId('s1')
const header = headerOf('s1')
const events = logOf(...turnOf('a'))

test('the folder and the files are made with the first event, for their owner alone', async t => {
  const { folder, open } = setUp(t)
  const home = join(folder, 'deep/home')
  const medium = open({ path: join(home, 'own.sqlite') })
  assert.equal(await medium.read(id), undefined)
  assert.deepEqual(await medium.list(), [])
  const writer = medium.begin(header)
  await writer.append([])
  assert.equal(existsSync(home), false)
  await writer.append(events)
  assert.deepEqual(readdirSync(home).toSorted(), ['own.sqlite', 'own.sqlite-shm', 'own.sqlite-wal'])
  for (const name of readdirSync(home)) assert.equal(statSync(join(home, name)).mode & 0o777, 0o600, name)
  for (const path of [home, join(folder, 'deep')]) assert.equal(statSync(path).mode & 0o777, 0o700)
  await writer.close()
})

test('a closed database is one file', async t => {
  const place = setUp(t)
  const medium = place.open()
  const writer = medium.begin(header)
  await writer.append(events)
  await writer.close()
  await medium.close()
  assert.deepEqual(readdirSync(place.folder), ['sessions.sqlite'])
})

const refusals: readonly (readonly [
  title: string,
  arrange: (path: string, folder: string) => void,
  message: RegExp,
])[] = [
  [
    'that other users may read',
    path => writeFileSync(path, '', { mode: 0o644 }),
    /other users have rights to it; chmod 600 /,
  ],
  [
    'in a folder that other users may write',
    (_path, folder) => chmodSync(folder, 0o777),
    /other users have rights to it; chmod go-w /,
  ],
  [
    'that is a link',
    (path, folder) => symlinkSync(join(folder, 'elsewhere'), path),
    /it is a symbolic link$/,
  ],
  ['that is a folder', path => mkdirSync(path), /it is no file$/],
  [
    'that is some text',
    path => writeFileSync(path, 'notes\n'.repeat(100), { mode: 0o600 }),
    /it is no SQLite database$/,
  ],
  [
    'of another program',
    path => {
      const foreign = new DatabaseSync(path)
      foreign.exec('CREATE TABLE mine (a)')
      foreign.close()
      chmodSync(path, 0o600)
    },
    /left as it is: it belongs to another program: /,
  ],
]

for (const [title, arrange, message] of refusals) {
  test(`a database ${title} is refused, and left as it is`, async t => {
    const { path, folder, open } = setUp(t)
    arrange(path, folder)
    const before = existsSync(path) && statSync(path)
    const names = readdirSync(folder)
    await assert.rejects(open().begin(header).append(events), { code: 'STORE_FAILED', message })
    if (existsSync(path)) {
      await assert.rejects(open().read(id), { code: 'STORE_FAILED', message })
      await assert.rejects(open().list(), { code: 'STORE_FAILED', message })
    }
    assert.deepEqual(existsSync(path) && statSync(path).mtimeMs, before && before.mtimeMs)
    assert.deepEqual(readdirSync(folder), names)
  })
}

test('a database in a folder that is a link is refused', async t => {
  const { folder, open } = setUp(t)
  mkdirSync(join(folder, 'real'), { mode: 0o700 })
  symlinkSync(join(folder, 'real'), join(folder, 'link'))
  const message = /it is a symbolic link; name the folder itself$/
  const medium = open({ path: join(folder, 'link/sessions.sqlite') })
  await assert.rejects(medium.begin(header).append(events), { code: 'STORE_FAILED', message })
})

test('a database of a newer version is refused, and left as it is', async t => {
  const place = setUp(t)
  await storeLog(place, header, events)
  place.tamper('PRAGMA user_version = 2')
  const before = readFileSync(place.path)
  const refusal = { code: 'SESSION_FORMAT_NEWER', message: /newer dsh \(format 2, this one knows 1\): / }
  await assert.rejects(place.open().read(id), refusal)
  await assert.rejects(place.open().begin(headerOf('s2')).append(events), refusal)
  assert.deepEqual(readFileSync(place.path), before)
})

const otherTables: readonly (readonly [title: string, sql: string])[] = [
  ['a column more', 'ALTER TABLE events ADD COLUMN extra TEXT'],
  ['a column less', 'ALTER TABLE sessions DROP COLUMN updated_at'],
  ['a column of another name', 'ALTER TABLE artifacts RENAME COLUMN body TO content'],
  ['a trigger', 'CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END'],
  [
    'a table that takes values of any type',
    `ALTER TABLE artifacts RENAME TO old;
     CREATE TABLE artifacts (session INTEGER, sha256 TEXT, body BLOB, PRIMARY KEY (session, sha256));
     DROP TABLE old`,
  ],
]

for (const [title, sql] of otherTables) {
  test(`tables with ${title} are not used, also where that is seen between two writes`, async t => {
    const place = setUp(t)
    const medium = place.open()
    const writer = medium.begin(header)
    await writer.append(events.slice(0, 2))
    place.tamper(sql)
    const message = /left as it is: its tables are not those that this version makes: /
    await assert.rejects(writer.append(events.slice(2)), { code: 'STORE_FAILED', message })
    await assert.rejects(place.open().read(id), { code: 'STORE_FAILED', message })
    await assert.rejects(place.open().begin(headerOf('s2')).append(events), { code: 'STORE_FAILED', message })
  })
}

test('what sqlite3 notes for itself is not in the way', async t => {
  const place = setUp(t)
  await storeLog(place, header, events)
  place.tamper('ANALYZE')
  assert.deepEqual((await place.open().read(id))?.events, events)
})

test('what makes writes durable and foreign files harmless is set, and not only asked for', async t => {
  for (const journalMode of ['wal', 'delete', 'truncate', 'persist'] as const) {
    const { path } = setUp(t)
    const database = new Database({ path, journalMode, busyTimeoutMs: 0 })
    const names = [
      'journal_mode',
      'synchronous',
      'foreign_keys',
      'trusted_schema',
      'mmap_size',
      'secure_delete',
    ]
    const syncs = ['fullfsync', 'checkpoint_fullfsync']
    const found = await database.write(connection =>
      [...names, ...syncs].map(name => connection.pragma(name)),
    )
    assert.deepEqual(found, [journalMode, 2, 1, 0, 0, 1, 1, 1])
    database.close()
    await assert.rejects(
      database.read(() => 0),
      { code: 'STORE_CLOSED' },
    )
  }
})

test('an empty file is a database in which nothing is yet', async t => {
  const { path, open } = setUp(t)
  writeFileSync(path, '', { mode: 0o600 })
  assert.deepEqual(await open().list(), [])
  const writer = open().begin(header)
  await writer.append(events)
  await writer.close()
  assert.deepEqual((await open().read(id))?.events, events)
})

test('a database that was replaced is read anew, and a writer of the old one writes no more', async t => {
  const place = setUp(t)
  const medium = place.open()
  const writer = medium.begin(header)
  await writer.append(events.slice(0, 3))
  const other = setUp(t)
  await storeLog(other, headerOf('other'), events)
  for (const end of ['', '-wal', '-shm']) rmSync(`${place.path}${end}`, { force: true })
  renameSync(other.path, place.path)
  await assert.rejects(writer.append(events.slice(3)), { code: 'STALE_APPEND' })
  assert.deepEqual(
    (await medium.list()).map(row => row.id),
    ['other'],
  )
  assert.deepEqual((await place.open().read(SessionId('other')))?.events, events)
})

test('a copy of the file alone, made while it is written, opens at an earlier state', async t => {
  const place = setUp(t)
  const writer = place.open().begin(header)
  await writer.append(events.slice(0, 2))
  place.tamper('PRAGMA wal_checkpoint(TRUNCATE)')
  await writer.append(events.slice(2))
  const copy = join(place.folder, 'copy.sqlite')
  copyFileSync(place.path, copy)
  chmodSync(copy, 0o600)
  const medium = place.open({ path: copy })
  assert.deepEqual((await medium.read(id))?.events, events.slice(0, 2))
  assert.deepEqual((await medium.verify(id)).problems, [])
  const whole = join(place.folder, 'whole.sqlite')
  copyFileSync(place.path, whole)
  copyFileSync(`${place.path}-wal`, `${whole}-wal`)
  assert.deepEqual((await place.open({ path: whole }).read(id))?.events, events)
  await writer.close()
})

test('ids that UTF-8 cannot hold, and ids that look like them, are told apart', async t => {
  const place = setUp(t)
  const ids = ['\ud83c', '\ud83d', '\ufffd', '"\\ud83c"', '"', 'a\u0000', 'a', 'a\u0000b']
  for (const own of ids) await storeLog(place, headerOf(own), logOf(['user/message', userFact(own)]))
  const medium = place.open()
  assert.deepEqual((await medium.list()).map(row => row.id).toSorted(), ids.toSorted())
  for (const own of ids) {
    const log = await medium.read(SessionId(own))
    assert.deepEqual(log?.header, headerOf(own))
    assert.equal(log?.events.length, 1)
  }
})

test('a database in memory keeps what it gets as long as its program runs', async t => {
  const medium = setUp(t).open({ path: ':memory:' })
  assert.deepEqual(await medium.list(), [])
  const writer = medium.begin(header)
  await writer.append(events)
  await writer.close()
  const { log, writer: next } = await medium.resume(id)
  assert.deepEqual(log.events, events)
  await next.close()
  medium.watch(id, () => {})()
})

test('the plugin keeps the sessions of a program, and loads SQLite for the first of them', async t => {
  const { path } = setUp(t)
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeSqlite, { path })
  assert.equal(existsSync(path), false)
  const session = ctx.sessions.create(id)
  session.append('user/message', userFact('hi'), { surfaceOp: 'append' })
  await ctx.sessions.flush(session)
  assert.equal(ctx.sessionPersistence.locate(session.header), path)
  assert.equal(ctx.sessionPersistence.supportsRawArtifacts, false)
  await ctx.dispose()
  assert.deepEqual(readdirSync(join(path, '..')), ['sessions.sqlite'])
})

test('a config that cannot work is refused before anything is made', async () => {
  for (const config of [
    {},
    { path: '' },
    { path: 'x', journalMode: 'memory' },
    { path: 'x', busyTimeoutMs: -1 },
    { path: 'x', root: 'y' },
  ]) {
    const ctx = new Context()
    await ctx.plugin(SessionStore)
    await assert.rejects(async () => ctx.plugin(storeSqlite, config as never), { code: 'INVALID_CONFIG' })
    await ctx.dispose()
  }
})

test('a folder that is gone is made again for the next session', async t => {
  const { open } = setUp(t)
  const home = mkdtempSync(join(tmpdir(), 'store-sqlite-gone-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  const medium = open({ path: join(home, 'sessions.sqlite') })
  const first = medium.begin(header)
  await first.append(events)
  rmSync(home, { recursive: true })
  assert.equal(await medium.read(id), undefined)
  await assert.rejects(first.append(events), { code: 'STALE_APPEND' })
  await first.close()
  const second = medium.begin(headerOf('s2'))
  await second.append(events)
  await second.close()
  assert.equal((await medium.list()).length, 1)
})
