import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, open, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { beginJournal, endJournal, readJournal } from './journal.ts'
import type { Journal } from './journal.ts'

const place = { session: SessionId('s'), seq: 0 }
const journal: Journal = {
  owner: { pid: 1, start: '1', boot: 'b', host: 'h', space: 'n' },
  nonce: 'n',
  scope: 'both',
  from: place,
  to: place,
  session: SessionId('s'),
}

test('a rewind is written down durably, its name too, and by one program alone', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'dsh-journal-'))
  t.after(() => rm(folder, { recursive: true }))
  const handle = await open(folder)
  const prototype = Object.getPrototypeOf(handle) as typeof handle
  await handle.close()
  const { sync } = prototype
  const namedAtSync: boolean[] = []
  t.mock.method(prototype, 'sync', function synced(this: typeof handle) {
    namedAtSync.push(existsSync(join(folder, 'rewind.json')))
    return sync.call(this)
  })
  assert.equal(await beginJournal(folder, journal), true)
  assert.deepEqual(namedAtSync, [false, true])
  assert.equal(await beginJournal(folder, { ...journal, nonce: 'other' }), false)
  assert.deepEqual(await readJournal(folder), journal)
  assert.deepEqual(await readdir(folder), ['rewind.json'])
  await endJournal(folder)
  assert.equal(await readJournal(folder), undefined)
})

test('a rewind that cannot be made durable is not written down', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'dsh-journal-'))
  t.after(() => rm(folder, { recursive: true }))
  const handle = await open(folder)
  const broken = Object.assign(new Error('no'), { code: 'EIO' })
  t.mock.method(Object.getPrototypeOf(handle) as typeof handle, 'sync', () =>
    existsSync(join(folder, 'rewind.json')) ? Promise.reject(broken) : Promise.resolve(),
  )
  await handle.close()
  await assert.rejects(beginJournal(folder, journal), broken)
  assert.deepEqual(await readdir(folder), [])
})
