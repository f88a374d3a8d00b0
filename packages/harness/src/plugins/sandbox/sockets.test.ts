import assert from 'node:assert/strict'
import fs from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { settledSockets } from './sockets.ts'

const skip = process.platform === 'linux' ? false : 'other systems hold sockets without a list'

test('sockets that are bound to a path and stay are found, whatever the path', { skip }, async t => {
  const folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-sockets-')))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  fs.mkdirSync(join(folder, 'a folder'))
  fs.symlinkSync(join(folder, 'a folder'), join(folder, 'link'))
  const path = join(folder, 'a folder/ä socket')
  const server = createServer()
  await new Promise<void>(resolve => server.listen(join(folder, 'link/ä socket'), resolve))
  t.after(() => server.close())
  const mine = (): string[] =>
    settledSockets({ uid: process.getuid?.() }).filter(each => each.startsWith(folder))
  assert.deepEqual(mine(), [])
  for (const seconds of [0, Date.now() / 1000 - 11, Date.now() / 1000 + 3600]) {
    fs.utimesSync(path, seconds, seconds)
    assert.deepEqual(mine(), [path])
  }
  await new Promise(resolve => server.close(resolve))
  assert.deepEqual(mine(), [])
})

test(
  'a socket that nobody gets to without capabilities counts for nothing, also for root',
  { skip: skip || (canGiveAway() ? false : 'only root gives files away') },
  async t => {
    const folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-sockets-')))
    t.after(() => fs.rmSync(folder, { recursive: true }))
    const path = join(folder, 'socket')
    const server = createServer()
    await new Promise<void>(resolve => server.listen(path, resolve))
    t.after(() => server.close())
    fs.utimesSync(path, 0, 0)
    const mine = (): string[] =>
      settledSockets({ uid: process.getuid?.() }).filter(each => each.startsWith(folder))
    fs.chownSync(folder, 65534, 65534)
    assert.deepEqual(mine(), [])
    for (const [gid, mode] of [
      [65534, 0o701],
      [0, 0o710],
    ] as const) {
      fs.chownSync(folder, 65534, gid)
      fs.chmodSync(folder, mode)
      assert.deepEqual(mine(), [path])
    }
  },
)

test('names that are no paths, and paths where no socket is, count for nothing', async t => {
  const folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-sockets-')))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  fs.writeFileSync(join(folder, 'file'), '')
  fs.utimesSync(join(folder, 'file'), 0, 0)
  const row = (name: string): string => `00000000b1e408e7: 00000002 00000000 00010000 0001 01 4711 ${name}`
  const table = [
    'Num       RefCount Protocol Flags    Type St Inode Path',
    ...['', '@abstract', 'relative'].map(row),
  ]
  const gone = ['file', 'gone', 'file/below'].map(name => row(join(folder, name)))
  assert.deepEqual(settledSockets({ uid: 0, table: [...table, ...gone, ''].join('\n') }), [])
  assert.deepEqual(settledSockets({ uid: 0, table: '' }), [])
})

/** Root can, unless it is confined itself. */
function canGiveAway(): boolean {
  const folder = fs.mkdtempSync(join(tmpdir(), 'dsh-sockets-'))
  try {
    fs.chownSync(folder, 65534, 65534)
    return true
  } catch {
    return false
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
}
