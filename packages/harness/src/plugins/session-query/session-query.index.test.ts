import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { answerFact, userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { found, openLibrary } from './test-library.ts'

const prompt = (text: string): Draft => ['user/message', userFact(text)]
const answer = (text: string): Draft => ['assistant/message', answerFact(text)]

test('the index is a file for its owner alone, made by the first search', async t => {
  const { query, put, path } = await openLibrary(t)
  await put('s', [prompt('pear')])
  await query.listSessions()
  assert.throws(() => statSync(path), { code: 'ENOENT' })
  await found(query, 'pear')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
})

test('what has not changed is not read again, by another program neither', async t => {
  const first = await openLibrary(t)
  await first.put('a', [prompt('pear')])
  await first.put('b', [prompt('plum')])
  await found(first.query, 'pear')
  assert.deepEqual(first.streamed(), ['a from 0', 'b from 0'])
  await found(first.query, 'pear')
  await first.query.overview()
  const second = await openLibrary(t, { store: first.store, path: first.path })
  assert.deepEqual(await found(second.query, 'pear'), { a: [0] })
  await second.query.overview()
  assert.deepEqual([first.streamed(), second.streamed()], [[], []])
  assert.deepEqual([first.inspected(), second.inspected()], [0, 0])
})

test('a log that has grown is read from its last known event', async t => {
  const { query, put, grow, streamed } = await openLibrary(t)
  await put('a', [prompt('pear'), prompt('plum')])
  await found(query, 'pear')
  await grow('a', [prompt('another pear')])
  streamed()
  assert.deepEqual(await found(query, 'pear'), { a: [0, 2] })
  assert.deepEqual(streamed(), ['a from 1'])
})

test('a log that another one has taken the place of is read anew', async t => {
  const { query, put, streamed, store } = await openLibrary(t)
  await put('a', [prompt('pear'), prompt('plum'), prompt('more')])
  await found(query, 'pear')
  await store.open().remove(SessionId('a'))
  await put('a', [prompt('apple'), prompt('plum'), prompt('fig'), prompt('quince')])
  streamed()
  assert.deepEqual(await found(query, 'pear'), {})
  assert.deepEqual(await found(query, 'quince'), { a: [3] })
  assert.deepEqual(streamed(), ['a from 2', 'a from 0'])
  await store.open().remove(SessionId('a'))
  assert.deepEqual(await found(query, 'quince'), {})
})

test('what a later event replaces is found as hidden from the model, wherever the reading began', async t => {
  const { query, put, grow } = await openLibrary(t)
  await put('a', [prompt('pear one'), answer('pear two'), prompt('pear three')])
  await found(query, 'pear')
  const summary = { surfaceOp: { op: 'replace', start: 0, end: 1 }, sourceEventSeqs: [0, 1] } as const
  await grow('a', [['user/message', userFact('pear four'), summary]])
  const { hits } = await query.searchEvents({ sessionId: SessionId('a'), query: 'pear' })
  assert.deepEqual(
    hits.toSorted((a, b) => a.seq - b.seq).map(({ surface }) => surface),
    ['shadowed', 'shadowed', 'current', 'current'],
  )
})

test('an index that is removed, cut, overwritten or of another version is made anew', async t => {
  const { query, put, path } = await openLibrary(t)
  for (let index = 0; index < 30; index++)
    await put(`s${index}`, [prompt(`pear ${'word '.repeat(index * 40)}`)])
  const expected = await found(query, 'pear')
  assert.equal(Object.keys(expected).length, 20)
  const damages: Record<string, () => void> = {
    removed: () => rmSync(path),
    'removed with its log': () => ['', '-wal', '-shm'].forEach(end => rmSync(path + end, { force: true })),
    empty: () => truncateSync(path, 0),
    cut: () => truncateSync(path, 8192),
    garbage: () => writeFileSync(path, 'no database at all '.repeat(1000)),
    'garbage inside': () => {
      const bytes = readFileSync(path)
      bytes.fill(0xab, 4096)
      writeFileSync(path, bytes)
    },
  }
  for (const [name, damage] of Object.entries(damages)) {
    damage()
    assert.deepEqual(await found(query, 'pear'), expected, name)
  }
})

test('an index in which somebody changed something is made anew', async t => {
  const first = await openLibrary(t)
  await first.put('s', [prompt('pear')])
  const { store, path } = first
  const expected = await found(first.query, 'pear')
  await first.ctx.dispose()
  for (const change of [
    'DROP TABLE documents',
    'DROP TABLE sessions',
    'DROP TABLE documents; CREATE TABLE documents (id INTEGER)',
    'DROP TABLE words_config; CREATE TABLE words_config (k PRIMARY KEY, v)',
    "UPDATE sessions SET digest = 'x'",
    "UPDATE sessions SET digest = '{}'",
    "UPDATE sessions SET header = 'x', revision = 'x', next_seq = 99, tail = 'x'",
  ]) {
    const db = new DatabaseSync(path, { defensive: false })
    db.exec('PRAGMA writable_schema = ON')
    db.exec(change)
    db.close()
    const next = await openLibrary(t, { store, path })
    assert.match(JSON.stringify((await next.query.overview()).rows), /"firstPrompt":"pear"/, change)
    assert.deepEqual(await found(next.query, 'pear'), expected, change)
    await next.ctx.dispose()
  }
})

test('what is no file in the place of the index is named, and never waited for', async t => {
  for (const [what, put] of [
    ['a folder', (path: string) => mkdirSync(path, { recursive: true })],
    ['a pipe', (path: string) => void execFileSync('mkfifo', [path], { timeout: 10_000 })],
  ] as const) {
    const { query, put: store, path } = await openLibrary(t)
    await store('s', [prompt('pear')])
    mkdirSync(dirname(path), { recursive: true })
    put(path)
    await assert.rejects(found(query, 'pear'), { code: 'SESSION_QUERY_INDEX_FAILED' }, what)
    assert.match(`${(await query.overview()).indexProblem}`, /this is no file/)
  }
})

test('an index of another version is made anew in its place', async t => {
  const first = await openLibrary(t)
  await first.put('s', [prompt('pear')])
  await found(first.query, 'pear')
  await first.ctx.dispose()
  const db = new DatabaseSync(first.path)
  db.exec('PRAGMA user_version = 99; CREATE TABLE of_the_future (a)')
  db.close()
  const second = await openLibrary(t, { store: first.store, path: first.path })
  assert.deepEqual(await found(second.query, 'pear'), { s: [0] })
  assert.deepEqual(second.streamed(), ['s from 0'])
})

test('the database of another program is refused and stays as it is', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-query-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'index.sqlite')
  const db = new DatabaseSync(path)
  db.exec(`CREATE TABLE precious (a); INSERT INTO precious VALUES ('x')`)
  db.close()
  const before = readFileSync(path)
  const { query, put } = await openLibrary(t, { path })
  await put('s', [prompt('pear')])
  await assert.rejects(found(query, 'pear'), {
    code: 'SESSION_QUERY_INDEX_FAILED',
    message: `this is the database of another program: ${path}`,
  })
  const { rows, indexProblem } = await query.overview()
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['s'],
  )
  assert.match(indexProblem ?? '', /another program/)
  assert.deepEqual(readFileSync(path), before)
})

test('a file that is no database is moved aside, not destroyed', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-query-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'index.sqlite')
  writeFileSync(path, 'somebody wrote this')
  const { query, put } = await openLibrary(t, { path })
  await put('s', [prompt('pear')])
  assert.deepEqual(await found(query, 'pear'), { s: [0] })
  assert.equal(readFileSync(`${path}.damaged`, 'utf8'), 'somebody wrote this')
})

test('where no file can be made the index stands in memory', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-query-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'cache'), 'a file where the folder should be')
  const { query, put } = await openLibrary(t, { path: join(folder, 'cache', 'index.sqlite') })
  await put('s', [prompt('pear')])
  assert.deepEqual(await found(query, 'pear'), { s: [0] })
  assert.match((await query.overview()).indexProblem ?? '', /EEXIST|ENOTDIR/)
})

test('an index that is too big gives up the oldest sessions, and says so', async t => {
  const { query, put, path } = await openLibrary(t, { config: { maxIndexBytes: 1_000_000 } })
  let seed = 1
  const word = (): string => ((seed = (seed * 48_271) % 2_147_483_647) % 46_656).toString(36)
  const words = (): string => Array.from({ length: 20_000 }, word).join(' ')
  const ids = ['s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7']
  for (const [createdAt, id] of ids.entries())
    await put(id, [prompt(`needle ${id}`), prompt(words())], { createdAt })
  const { sessions, left } = await query.searchSessions({ query: 'needle' })
  const kept = sessions.map(({ record }) => record.id)
  assert.ok(kept.includes(SessionId('s7')) && !kept.includes(SessionId('s0')), kept.join())
  const gone = left.map(({ id }) => id)
  assert.deepEqual([...kept, ...gone].toSorted(), ids)
  assert.ok(left.every(({ reason }) => reason === 'it is too old for the size of the index'))
  assert.deepEqual(
    (await query.overview()).rows.map(row => 'summary' in row && row.summary?.title),
    ids.toReversed().map(id => `needle ${id}`),
  )
  assert.ok(statSync(path).size < 4_000_000)
})

test('a file that grew beyond all measure is replaced unread', async t => {
  const first = await openLibrary(t)
  await first.put('s', [prompt('pear')])
  await found(first.query, 'pear')
  await first.ctx.dispose()
  truncateSync(first.path, 5 * 400_000)
  const config = { maxIndexBytes: 400_000 }
  const second = await openLibrary(t, { store: first.store, path: first.path, config })
  assert.deepEqual(await found(second.query, 'pear'), { s: [0] })
  assert.ok(statSync(first.path).size < 400_000)
})

test('while another program writes the index it is read as it is', async t => {
  const { query, put, grow, path } = await openLibrary(t, { config: { patienceMs: 0 } })
  await put('s', [prompt('pear')])
  await found(query, 'pear')
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  await grow('s', [prompt('pear again')])
  const page = await query.searchSessions({ query: 'pear', hitsPerSession: 5 })
  assert.deepEqual(page.sessions[0]?.matched, 1)
  assert.deepEqual(page.left, [{ id: 's', reason: 'another program writes the index' }])
  other.exec('COMMIT')
  other.close()
  assert.deepEqual(await found(query, 'pear'), { s: [0, 1] })
})

test('a reading that fails half way leaves nothing of it', async t => {
  let isBroken = true
  const { query, put } = await openLibrary(t, {
    medium: medium => ({
      ...medium,
      async *stream(id, options) {
        for await (const batch of medium.stream?.(id, options) ?? []) {
          yield { events: batch.events.filter(({ seq }) => seq < 1) }
          if (isBroken) throw new Error('the disk is gone')
          yield { events: batch.events.filter(({ seq }) => seq >= 1) }
        }
      },
    }),
  })
  await put('s', [prompt('pear'), prompt('plum')])
  const page = await query.searchSessions({ query: 'pear' })
  assert.deepEqual([page.sessions, page.left], [[], [{ id: 's', reason: 'the disk is gone' }]])
  isBroken = false
  assert.deepEqual(await found(query, 'plum'), { s: [1] })
})

test('when the store is gone its sessions are out of sight, not out of the index', async t => {
  const first = await openLibrary(t)
  await first.put('s', [prompt('pear')])
  await found(first.query, 'pear')
  await first.ctx.dispose()
  const kept = join(dirname(first.path), 'copy.sqlite')
  mkdirSync(dirname(kept), { recursive: true })
  copyFileSync(first.path, kept)
  const { Context } = await import('../../kernel/index.ts')
  const { SessionStore } = await import('../../core/session/index.ts')
  const { sessionQuery } = await import('./index.ts')
  const bare = new Context()
  await bare.plugin(SessionStore)
  await bare.plugin(sessionQuery, { path: kept })
  assert.deepEqual(await found(bare.sessionQuery, 'pear'), {})
  await bare.dispose()
  const again = await openLibrary(t, { store: first.store, path: kept })
  assert.deepEqual(await found(again.query, 'pear'), { s: [0] })
  assert.deepEqual(again.streamed(), [])
})

test('what is removed for good is gone from the index too, without a further question', async t => {
  const { ctx, query, put, path } = await openLibrary(t)
  await put('a', [prompt('a very secret pear')])
  await put('b', [prompt('plum')])
  await ctx.sessionPersistence.remove(SessionId('b'))
  assert.throws(() => statSync(path), { code: 'ENOENT' }, 'a removal makes no index')
  await found(query, 'pear')
  await ctx.sessionPersistence.remove(SessionId('a'))
  const db = new DatabaseSync(path, { readOnly: true })
  t.after(() => db.close())
  for (const table of ['sessions', 'documents'])
    assert.equal(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'], 0, table)
})
