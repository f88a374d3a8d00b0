import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { Ignore, parseIgnoreRules } from './ignore.ts'

function ignoreOf(rules: Readonly<Record<string, string>>): Ignore {
  const parsed = new Map(Object.entries(rules).map(([folder, text]) => [folder, parseIgnoreRules(text)]))
  return new Ignore(folder => parsed.get(folder))
}

test('rules count for their folder and below, the nearest and the last of them first', () => {
  const ignore = ignoreOf({ '': '*.log\n/build/\n!keep.log\n', a: 'keep.log\n/x\n' })
  const covered = ['o.log', 'd/o.log', 'build/a', 'a/keep.log', 'a/x', 'a/x/y'].filter(path =>
    ignore.covers(path),
  )
  assert.deepEqual(covered, ['o.log', 'd/o.log', 'build/a', 'a/keep.log', 'a/x', 'a/x/y'])
  const free = ['keep.log', 'd/build/a', 'build', 'a/b/x', 'x'].filter(path => ignore.covers(path))
  assert.deepEqual(free, [])
})

test('what is below an ignored folder cannot be taken in again', () => {
  assert.ok(ignoreOf({ '': 'd/\n!d/f\n' }).covers('d/f'))
  assert.ok(!ignoreOf({ '': 'd/*\n!d/f\n' }).covers('d/f'))
})

test('a pattern takes no longer than it and the path are long, whatever it is', () => {
  const long = 'a'.repeat(250)
  const deep = 'a/'.repeat(100)
  for (const [pattern, path] of [
    ['*a'.repeat(60) + 'b', long],
    ['a**'.repeat(60) + 'b', long],
    ['[a]*'.repeat(60) + 'b', long],
    ['**/a/'.repeat(40) + 'b', `${deep}c`],
  ] as const)
    assert.ok(!ignoreOf({ '': pattern }).matches(path, false))
  assert.ok(ignoreOf({ '': '*a'.repeat(60) + 'b' }).matches(`${long}b`, false))
})

test('a class that there is not matches nothing', () => {
  for (const name of ['nothing', 'toString', 'constructor'])
    assert.ok(!ignoreOf({ '': `[[:${name}:]]` }).matches('a', false))
})

const atoms =
  'a b ab * ? ** / / [ab] [!a] \\a \\* a* .x [a-c] [[:alpha:]] [ ] \\ []a] [^b] *** a/**/b - ! #'.split(' ')
const pattern = fc
  .array(fc.constantFrom(...atoms, ' ', '\\ '), { minLength: 1, maxLength: 4 })
  .map(all => all.join(''))
const rules = fc.array(pattern, { minLength: 1, maxLength: 5 }).map(lines => lines.join('\n'))
const name = fc.constantFrom('a', 'b', 'ab', '.x', 'c', 'a b', 'a ', '[', '#a', '!b', '*', 'aab', '-', ']')
const paths = fc.uniqueArray(
  fc.array(name, { minLength: 1, maxLength: 4 }).map(parts => parts.join('/')),
  { minLength: 20, maxLength: 40 },
)

test('rules mean what they mean to git', t => {
  const folder = mkdtempSync(join(tmpdir(), 'ignore-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', HOME: folder }
  const git = (args: readonly string[], input = ''): string => {
    const options = {
      cwd: folder,
      env,
      input,
      encoding: 'latin1',
      timeout: 10_000,
      killSignal: 'SIGKILL',
    } as const
    try {
      return execFileSync('git', args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] })
    } catch (error) {
      // It matched nothing.
      assert.equal((error as { status: unknown }).status, 1)
      return ''
    }
  }
  git(['init', '-q'])
  mkdirSync(join(folder, 'a'))
  fc.assert(
    fc.property(rules, rules, paths, (outer, inner, names) => {
      writeFileSync(join(folder, '.gitignore'), outer)
      writeFileSync(join(folder, 'a/.gitignore'), inner)
      // The folder that is there is the one path of which git knows more than its name.
      const asked = names.filter(path => path !== 'a')
      const ignored = git(['check-ignore', '--no-index', '-z', '--stdin'], `${asked.join('\0')}\0`).split(
        '\0',
      )
      const ignore = ignoreOf({ '': outer, a: inner })
      assert.deepEqual(
        asked.filter(path => ignore.covers(path)),
        asked.filter(path => ignored.includes(path)),
      )
    }),
    { numRuns: 30 },
  )
})
