import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { replaceFile } from './index.ts'

async function setup(t: TestContext): Promise<{ folder: string; path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'dsh-replace-'))
  t.after(() => rm(folder, { recursive: true }))
  return { folder, path: join(folder, 'file') }
}

/** What stood at `path` each time something was synced. */
async function syncsOf(t: TestContext, path: string): Promise<string[]> {
  const handle = await open(path)
  const prototype = Object.getPrototypeOf(handle) as typeof handle
  await handle.close()
  const { sync } = prototype
  const seen: string[] = []
  t.mock.method(prototype, 'sync', function synced(this: typeof handle) {
    seen.push(readFileSync(path, 'utf8'))
    return sync.call(this)
  })
  return seen
}

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o7777
}

test('a file is made where there is none, for its owner alone, and replaced where there is one', async t => {
  const { folder, path } = await setup(t)
  await replaceFile(path, 'a long text')
  assert.deepEqual([await readFile(path, 'utf8'), await modeOf(path)], ['a long text', 0o600])
  await replaceFile(path, new Uint8Array([98]))
  assert.equal(await readFile(path, 'utf8'), 'b')
  assert.deepEqual(await readdir(folder), ['file'])
})

test('a file keeps its mode, whatever the umask is, unless it is given another', async t => {
  const { path } = await setup(t)
  await writeFile(path, 'a')
  await chmod(path, 0o666)
  await replaceFile(path, 'b')
  assert.equal(await modeOf(path), 0o666)
  await replaceFile(path, 'c', { mode: 0o640 })
  assert.equal(await modeOf(path), 0o640)
})

test('the content is durable before it is in place, and its place is durable at the end', async t => {
  const { path } = await setup(t)
  await writeFile(path, 'old')
  const seen = await syncsOf(t, path)
  await replaceFile(path, 'new')
  assert.deepEqual(seen, ['old', 'new'])
})

test('what can be made again waits for no disk', async t => {
  const { path } = await setup(t)
  await writeFile(path, 'old')
  const seen = await syncsOf(t, path)
  await replaceFile(path, 'new', { isCache: true })
  assert.deepEqual([seen, await readFile(path, 'utf8')], [[], 'new'])
})

test('what cannot be put in place is an error, and leaves nothing beside what is there', async t => {
  const { folder, path } = await setup(t)
  await mkdir(path)
  await assert.rejects(replaceFile(path, 'a'), { code: 'EISDIR' })
  await assert.rejects(replaceFile(join(folder, 'none', 'file'), 'a'), { code: 'ENOENT' })
  assert.deepEqual(await readdir(folder), ['file'])
})

test('a disk that fails leaves what was there', async t => {
  const { folder, path } = await setup(t)
  await replaceFile(path, 'old')
  const handle = await open(path)
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' })
  t.mock.method(Object.getPrototypeOf(handle) as typeof handle, 'sync', () => Promise.reject(full))
  await handle.close()
  await assert.rejects(replaceFile(path, 'new'), full)
  assert.deepEqual([await readFile(path, 'utf8'), await readdir(folder)], ['old', ['file']])
})

test('of many who replace a file at once one wins whole', async t => {
  const { folder, path } = await setup(t)
  const texts = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(100_000))
  await Promise.all(texts.map(text => replaceFile(path, text, { isCache: true })))
  assert.ok(texts.includes(await readFile(path, 'utf8')))
  assert.deepEqual(await readdir(folder), ['file'])
})

test('a link stays one, and what it leads to is replaced', async t => {
  const { folder, path } = await setup(t)
  const link = join(folder, 'link')
  await writeFile(path, 'old')
  await symlink('file', link)
  await replaceFile(link, 'new')
  assert.ok((await lstat(link)).isSymbolicLink())
  assert.equal(await readFile(path, 'utf8'), 'new')
})
