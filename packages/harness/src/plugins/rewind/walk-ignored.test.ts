import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { placeholderSign } from '../sandbox/index.ts'
import { walkIgnored } from './walk-ignored.ts'
import { walk as walkAll } from './walk.ts'

function setup(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'ignored-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const write = (path: string, size: number): void => {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), 'x'.repeat(size))
  }
  const walk = async (entries: readonly string[], limits: object = {}, without: readonly string[] = []) => {
    const { files, leftOut } = await walkIgnored(root, entries, {
      limits: { maxFileBytes: 100, maxBytes: 1000, maxFiles: 10, ...limits },
      without: new Set(without.map(path => join(root, path))),
      signal: new AbortController().signal,
    })
    return { files: [...files.keys()], leftOut }
  }
  return { root, write, walk }
}

test('small files and whole folders are kept, files first', async t => {
  const { root, write, walk } = setup(t)
  write('folder/deep/b', 10)
  write('folder/a', 10)
  write('env', 10)
  symlinkSync('env', join(root, 'link'))
  const { files, leftOut } = await walk(['folder', 'env', 'link', 'gone'])
  assert.deepEqual(files, ['env', 'link', 'folder/a', 'folder/deep/b'])
  assert.deepEqual(leftOut, [])
})

test('folders of the sandbox that only take a name are no files of the person', async t => {
  const { root, write, walk } = setup(t)
  mkdirSync(join(root, '.vscode'))
  writeFileSync(join(root, '.vscode/.gitignore'), placeholderSign)
  write('.idea/.gitignore', 10)
  assert.deepEqual(await walk(['.vscode', '.idea']), { files: ['.idea/.gitignore'], leftOut: [] })
  const walked = await walkAll(root, {
    maxFileBytes: 100,
    maxFiles: 10,
    maxBytes: 1000,
    without: new Set(),
    rules: new Map(),
    signal: new AbortController().signal,
  })
  assert.deepEqual(
    [[...walked.folders], [...walked.files.keys()], walked.ignoredPaths],
    [['.idea'], ['.idea/.gitignore'], []],
  )
})

test('a large file is left out, alone or in a folder, and said to be', async t => {
  const { write, walk } = setup(t)
  write('large', 101)
  write('folder/large', 101)
  write('folder/small', 100)
  assert.deepEqual(await walk(['large', 'folder']), { files: ['folder/small'], leftOut: ['large', 'folder'] })
})

test('a folder of which there is more than may be kept is left out whole', async t => {
  const { write, walk } = setup(t)
  for (const [index] of Array.from({ length: 8 }).entries()) write(`modules/${index}`, 90)
  write('env', 90)
  write('cache/a', 90)
  const some = await walk(['modules', 'env', 'cache'], { maxBytes: 500 })
  assert.deepEqual(some, { files: ['env', 'cache/a'], leftOut: ['modules'] })
  assert.deepEqual((await walk(['modules', 'env'], { maxFiles: 5 })).leftOut, ['modules'])
})

test('what is of git, and what is no part of the workspace, is left alone', async t => {
  const { write, walk } = setup(t)
  write('nested/.git/HEAD', 10)
  write('nested/file', 10)
  write('home/file', 10)
  assert.deepEqual(await walk(['nested', 'home'], {}, ['home']), {
    files: ['nested/file'],
    leftOut: ['nested'],
  })
})
