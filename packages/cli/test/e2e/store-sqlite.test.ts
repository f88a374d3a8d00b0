import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, sessionIn } from './dsh.ts'

const rows = '- {id: store-jsonl, disabled: true}\n- name: store-sqlite\n'

function composed(t: TestContext, yaml: string) {
  const place = bench(t)
  mkdirSync(place.home, { recursive: true })
  chmodSync(place.home, 0o700)
  writeFileSync(join(place.home, 'dsh.yml'), yaml)
  return { ...place, database: join(place.home, 'sessions.sqlite') }
}

test('a run whose dsh.yml names the SQLite store is kept there, found there and continued there', async t => {
  const { dsh, provider, database, logs, work } = composed(t, rows)
  writeFileSync(join(work, 'note.txt'), 'from the file')
  const script = [reply.toolCall('read', { file_path: 'note.txt' }), reply.text('read it')]
  const mock = await provider({ script: [...script, reply.text('again')] })
  const first = await dsh(['run', 'read the note'])
  assert.deepEqual([first.code, first.stdout], [0, 'read it\n'], first.stderr)
  assert.deepEqual(logs(), [])
  assert.equal(statSync(database).mode & 0o777, 0o600)

  const id = sessionIn(first.stderr)
  const listed = await dsh(['session', 'ls', '--json'])
  assert.deepEqual([listed.code, listed.stderr], [0, ''])
  const row = JSON.parse(listed.stdout) as { id: string; path: string }
  assert.deepEqual([row.id, row.path], [id, database])
  const shown = await dsh(['session', 'show', id])
  assert.match(shown.stdout, /read the note[^]*read it/)
  const printed = await dsh(['session', 'cat', id])
  const stored = printed.stdout.trimEnd().split('\n')

  const second = await dsh(['run', '-c', 'and again'])
  assert.deepEqual([second.code, second.stdout], [0, 'again\n'], second.stderr)
  assert.match(mock.requests[2]?.text ?? '', /from the file/)
  const after = (await dsh(['session', 'cat', id])).stdout.trimEnd().split('\n')
  assert.deepEqual(after.slice(0, stored.length), stored)
  assert.ok(after.length > stored.length)

  const rowsBySql = new DatabaseSync(database, { readOnly: true })
  const { count } = rowsBySql.prepare('SELECT count(*) AS count FROM events').get() as { count: number }
  rowsBySql.close()
  assert.equal(count, after.length)
})

test('looking at sessions makes no database where there is none', async t => {
  const { dsh, home, database } = composed(t, rows)
  const { code, stdout, stderr } = await dsh(['session', 'ls'])
  assert.deepEqual([code, stdout, stderr], [0, '', `no sessions in ${home} yet\n`])
  assert.equal(existsSync(database), false)
})

test('a database that is not ours is named and left as it is, and nothing is run', async t => {
  const { dsh, provider, database } = composed(t, rows)
  const foreign = new DatabaseSync(database)
  foreign.exec('CREATE TABLE mine (a); INSERT INTO mine VALUES (1)')
  foreign.close()
  chmodSync(database, 0o600)
  const before = statSync(database)
  const mock = await provider({ script: [reply.text('ok')] })
  const { code, stdout, stderr } = await dsh(['run', 'hi'])
  assert.deepEqual([code, stdout, mock.requests.length], [1, '', 0])
  assert.match(
    stderr,
    /STORE_FAILED.*the database is not used, and left as it is: it belongs to another program/,
  )
  const listed = await dsh(['session', 'ls'])
  assert.equal(listed.code, 1)
  assert.match(
    listed.stderr,
    /^error \w+: .*the database is not used, and left as it is: it belongs to another program/m,
  )
  const after = statSync(database)
  assert.deepEqual([after.mtimeMs, after.size], [before.mtimeMs, before.size])
  assert.equal(existsSync(`${database}-wal`), false)
})

test('where both stores are on, the first keeps the sessions and the other is said to be off', async t => {
  const { dsh, provider, logs } = composed(t, '- name: store-sqlite\n')
  await provider({ script: [reply.text('ok')] })
  const { code, stderr } = await dsh(['run', 'hi'])
  assert.equal(code, 0)
  assert.equal(logs().length, 1)
  assert.match(stderr, /note: plugin "store-sqlite" is failed/)
})

test('a value that the store does not take is told with the row', async t => {
  const { dsh } = composed(t, `${rows}  config: {journalMode: fast}\n`)
  const { code, stderr } = await dsh(['session', 'ls'])
  assert.equal(code, 1)
  assert.match(stderr, /^error NO_STORE: no session would be kept: plugin "store-sqlite" is off/m)
  assert.match(stderr, /journalMode/)
})
