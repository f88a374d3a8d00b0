import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolders } from './make-folders.ts'

test('folders are made down to the last, for their owner alone, and the first of them is told', t => {
  const root = mkdtempSync(join(tmpdir(), 'make-'))
  t.after(() => rmSync(root, { recursive: true }))
  const path = join(root, 'a', 'b', 'c')
  assert.equal(makeFolders(path), join(root, 'a'))
  assert.equal(statSync(join(root, 'a')).mode & 0o777, 0o700)
  assert.equal(makeFolders(path), undefined)
  assert.equal(makeFolders(join(path, 'd')), join(path, 'd'))
  assert.equal(makeFolders('/'), undefined)
})

test('where no folder can be made, that is said at once', t => {
  const root = mkdtempSync(join(tmpdir(), 'make-'))
  t.after(() => rmSync(root, { recursive: true }))
  writeFileSync(join(root, 'file'), '')
  symlinkSync(join(root, 'gone'), join(root, 'link'))
  for (const path of ['file', 'file/a', 'file/a/b', 'link'])
    assert.throws(() => makeFolders(join(root, path)), { code: 'ENOTDIR' }, path)
  if (existsSync('/proc/1'))
    for (const path of ['/proc/1/x', '/proc/1/x/y/z', '/proc/x'])
      assert.throws(() => makeFolders(path), { code: 'ENOENT' }, path)
})
