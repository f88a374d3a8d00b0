import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { anchorFolder } from './anchor.ts'
import { publish } from './staging.ts'

const needsProc = { skip: process.platform !== 'linux' }

/** A folder to work in and one beside it that nothing may reach. */
function setup(t: TestContext) {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-anchor-')))
  t.after(() => fs.rmSync(root, { recursive: true, force: true }))
  const [inside, outside] = [join(root, 'work/folder'), join(root, 'outside')]
  for (const folder of [inside, outside]) fs.mkdirSync(folder, { recursive: true })
  /** What a program beside us does at the worst moment. */
  const swap = (): void => {
    fs.renameSync(inside, join(root, 'work/moved'))
    fs.symlinkSync(outside, inside)
  }
  const put = (path: string, confirm: () => void = () => {}, replaces?: fs.BigIntStats): Promise<void> =>
    publish({
      path,
      displayPath: path,
      content: Buffer.from('text'),
      replaces,
      mayOverwrite: false,
      maker: { pid: 1, umask: 0o022 },
      confirm: async () => confirm(),
    })
  return { root, inside, outside, swap, put }
}

const stale = { code: 'FS_STALE_VERSION', message: /(leads elsewhere|is no folder) since it was found$/ }

test('a link that takes the place of a folder before a write gets nothing', needsProc, async t => {
  const { inside, outside, swap, put } = setup(t)
  swap()
  await assert.rejects(put(join(inside, 'a')), stale)
  await assert.rejects(put(join(inside, 'new/deep/a')), stale)
  assert.deepEqual(fs.readdirSync(outside), [])
})

test('a link that takes the place of a folder in the middle of a write gets nothing', needsProc, async t => {
  const { root, inside, outside, swap, put } = setup(t)
  await put(join(inside, 'a'), swap)
  assert.deepEqual(fs.readdirSync(outside), [])
  assert.deepEqual(fs.readdirSync(join(root, 'work/moved')), ['a'])
})

test('a file is replaced in the folder it was found in, wherever that is by now', needsProc, async t => {
  const { root, inside, outside, swap, put } = setup(t)
  const path = join(inside, 'a')
  for (const file of [path, join(outside, 'a')]) fs.writeFileSync(file, 'old')
  await put(path, swap, fs.statSync(path, { bigint: true }))
  assert.equal(fs.readFileSync(join(outside, 'a'), 'utf8'), 'old')
  assert.equal(fs.readFileSync(join(root, 'work/moved/a'), 'utf8'), 'text')
  assert.deepEqual(fs.readdirSync(outside), ['a'])
})

test('a link further up that takes the place of a folder is noticed as well', needsProc, async t => {
  const { root, inside, outside } = setup(t)
  fs.mkdirSync(join(outside, 'folder'))
  fs.renameSync(join(root, 'work'), join(root, 'moved'))
  fs.symlinkSync(outside, join(root, 'work'))
  await assert.rejects(anchorFolder(inside), stale)
  await assert.rejects(anchorFolder(join(inside, 'new')), stale)
  assert.deepEqual(fs.readdirSync(join(outside, 'folder')), [])
})

test('missing folders are made, by several at once, and no handle stays open', needsProc, async t => {
  const { inside, put } = setup(t)
  const open = (): number => fs.readdirSync('/proc/self/fd').length
  const before = open()
  await Promise.all(['a', 'b', 'c'].map(name => put(join(inside, 'x/y/z', name))))
  await assert.rejects(put(join(inside, 'x/y/z/a')), { code: 'FS_NOT_OBSERVED' })
  await assert.rejects(put(join(inside, 'x/y/z/a/below')), { code: 'FS_STALE_VERSION' })
  assert.deepEqual(fs.readdirSync(join(inside, 'x/y/z')), ['a', 'b', 'c'])
  assert.equal(open(), before)
})
