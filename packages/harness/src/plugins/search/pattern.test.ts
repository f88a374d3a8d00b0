import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGlob } from './pattern.ts'

const fitting = (glob: string, ...paths: string[]): string[] =>
  paths.filter(path => readGlob(glob).matches(path))

test('a glob without a slash fits names at any depth, one with a slash only as it stands', () => {
  assert.deepEqual(fitting('*.ts', 'a.ts', 'x/y/b.ts', 'a.tsx', '.ts'), ['a.ts', 'x/y/b.ts', '.ts'])
  assert.deepEqual(fitting('**/*.ts', 'a.ts', 'x/y/b.ts'), ['a.ts', 'x/y/b.ts'])
  assert.deepEqual(fitting('*/b.ts', 'b.ts', 'x/b.ts', 'x/y/b.ts'), ['x/b.ts'])
  assert.deepEqual(fitting('./*.ts', 'a.ts', 'x/a.ts'), ['a.ts', 'x/a.ts'])
})

test('two stars stand for any number of folders wherever they are', () => {
  const paths = ['a/b', 'a/x/b', 'a/x/y/b', 'a/x/b/c', 'z/a/b']
  assert.deepEqual(fitting('**/a/**/b', ...paths), ['a/b', 'a/x/b', 'a/x/y/b', 'z/a/b'])
  assert.deepEqual(fitting('*/**', ...paths), paths)
  assert.deepEqual(fitting('?/**/b/*', ...paths), ['a/x/b/c'])
  assert.deepEqual(fitting('**/b/', ...paths), ['a/x/b/c'], 'a slash at the end means all of a folder')
  assert.deepEqual(fitting('a**b', 'ab', 'axb', 'a/b'), ['ab', 'axb'], 'within a name they are one')
})

test('the folders that a glob begins with are where a search begins', () => {
  const read = (glob: string) => {
    const { base, matches } = readGlob(glob)
    return [base, ['a.ts', 'x/a.ts'].filter(matches)]
  }
  assert.deepEqual(read('src/*.ts'), ['src', ['a.ts']])
  assert.deepEqual(read('src/lib/**/*.ts'), ['src/lib', ['a.ts', 'x/a.ts']])
  assert.deepEqual(read('/srv/app/*.ts'), ['/srv/app', ['a.ts']])
  assert.deepEqual(read('/*.ts'), ['/', ['a.ts']])
  assert.deepEqual(read('../x/a.ts'), ['../x', ['a.ts']])
  assert.deepEqual(read('src/'), ['src', ['a.ts', 'x/a.ts']])
})

test('classes, single characters, choices and what is meant as it stands', () => {
  assert.deepEqual(fitting('[a-c]?', 'a1', 'c', 'd1', 'b😀'), ['a1', 'b😀'])
  assert.deepEqual(fitting('[!a-c]', 'a', 'd'), ['d'])
  assert.deepEqual(fitting('[^]]x', ']x', 'ax'), ['ax'])
  assert.deepEqual(fitting('[a-]', 'a', '-', 'b'), ['a', '-'])
  assert.deepEqual(fitting('*.{ts,{c,m}js}', 'a.ts', 'a.cjs', 'a.mjs', 'a.js'), ['a.ts', 'a.cjs', 'a.mjs'])
  assert.deepEqual(fitting('{src,test}/**/*.ts', 'src/a.ts', 'test/x/b.ts', 'lib/a.ts'), [
    'src/a.ts',
    'test/x/b.ts',
  ])
  assert.deepEqual(fitting('a\\*', 'a*', 'ab'), ['a*'])
  assert.deepEqual(fitting('[{,}]', '{', ',', 'x'), ['{', ','])
})

test('a folder whose name looks like a class can be named as it is', () => {
  assert.deepEqual(
    fitting('app/[id]/page.tsx'.replace('app/', ''), '[id]/page.tsx', 'i/page.tsx', 'x/page.tsx'),
    ['[id]/page.tsx', 'i/page.tsx'],
  )
})

test('a glob that excludes, is blank or is not closed is refused with what is wrong', () => {
  const cases = {
    '!*.ts': 'the glob "!*.ts" begins with !, and there is no search for what does not fit',
    '  ': 'the glob "  " is blank',
    '[a': 'the glob "[a" opens a [ that it does not close',
    '*.{ts': 'the glob "*.{ts" opens a { that it does not close',
    'a}': 'the glob "a}" closes a } that it does not open',
    'a\\': 'the glob "a\\" ends with a \\',
  }
  for (const [glob, message] of Object.entries(cases))
    assert.throws(() => readGlob(glob), { code: 'SEARCH_INVALID_PATTERN', message })
  assert.throws(() => readGlob('{a,b}'.repeat(12)), { message: /has more than 256 alternatives$/ })
})

test('names to choose by are given only where the search program reads them the same way', () => {
  const names = (glob: string) => readGlob(glob).names
  assert.deepEqual(names('src/**/*.{ts,tsx}'), ['*.ts', '*.tsx'])
  assert.deepEqual(names('.env*'), ['.env*'])
  for (const glob of ['src/**', '[id].ts', 'a:b', '{src/**,*.ts}']) assert.equal(names(glob), undefined, glob)
})

test('many stars over a long name take no longer than their product', () => {
  const glob = `${'a*'.repeat(60)}b`
  const folders = `${'**/a/'.repeat(60)}b`
  assert.equal(readGlob(glob).matches('a'.repeat(20_000)), false)
  assert.equal(readGlob(folders).matches('a/'.repeat(5000) + 'c'), false)
})
