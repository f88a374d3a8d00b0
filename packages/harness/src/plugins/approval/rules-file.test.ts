import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { PermissionRule } from './index.ts'
import { readRule, ruleText } from './rule.ts'
import { RulesFile } from './rules-file.ts'

function setup(t: TestContext) {
  const dir = fs.mkdtempSync(join(tmpdir(), 'dsh-rules-'))
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }))
  const path = join(dir, 'home/permissions.json')
  fs.mkdirSync(join(dir, 'home'))
  return { path, file: new RulesFile(path), write: (text: string) => fs.writeFileSync(path, text) }
}

const command = (word: string): PermissionRule => ({ effect: 'allow', kind: 'command', prefix: [word] })

test('rules are kept in a file that its owner alone may read, one a line', async t => {
  const { file, path } = setup(t)
  assert.deepEqual(await file.read().then(({ rules, problems }) => ({ rules, problems })), {
    rules: [],
    problems: [],
  })
  const filed = await file.add([command('make'), { effect: 'deny', kind: 'fetch', host: '*.example.org' }])
  assert.deepEqual(
    filed.map(({ id }) => id),
    ['r1', 'r2'],
  )
  assert.equal(
    fs.readFileSync(path, 'utf8'),
    `{
  "version": 1,
  "revision": 2,
  "rules": [
    {"id":"r1","effect":"allow","kind":"command","prefix":["make"]},
    {"id":"r2","effect":"deny","kind":"fetch","host":"*.example.org"}
  ]
}
`,
  )
  assert.equal(fs.statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(fs.readdirSync(join(path, '..')), ['permissions.json'])
  assert.deepEqual((await new RulesFile(path).read()).rules, filed)
})

test('a rule that is there is not kept twice, and no id comes twice', async t => {
  const { file } = setup(t)
  await file.add([command('a'), command('b')])
  assert.deepEqual(await file.add([{ prefix: ['a'], kind: 'command', effect: 'allow' }]), [
    { id: 'r1', rule: command('a') },
  ])
  assert.deepEqual(await file.remove(['r2']), [{ id: 'r2', rule: command('b') }])
  assert.deepEqual(
    (await file.add([command('c')])).map(({ id }) => id),
    ['r4'],
  )
  await assert.rejects(file.remove(['r1', 'r2']), { code: 'UNKNOWN_RULE' })
  assert.deepEqual(
    (await file.read()).rules.map(({ id }) => id),
    ['r1', 'r4'],
  )
})

test('writers in several programs and at once lose nothing', async t => {
  const { path } = setup(t)
  const words = Array.from({ length: 12 }, (_, index) => `w${index}`)
  await Promise.all(words.map(word => new RulesFile(path).add([command(word)])))
  const { rules } = await new RulesFile(path).read()
  const kept = new Set(rules.map(({ rule }) => (rule.kind === 'command' ? rule.prefix[0] : '')))
  assert.ok(words.every(word => kept.has(word)))
  assert.equal(kept.size, words.length)
  assert.equal(new Set(rules.map(({ id }) => id)).size, words.length)
})

test('the lock of a program that is dead is taken over, that of a living one is not', async t => {
  const { path, file } = setup(t)
  fs.writeFileSync(`${path}.lock`, '999999999')
  await file.add([command('a')])
  assert.equal(fs.existsSync(`${path}.lock`), false)
  fs.writeFileSync(`${path}.lock`, String(process.pid))
  const random = t.mock.method(Math, 'random', () => 0)
  await assert.rejects(file.add([command('b')]), {
    code: 'FILE_LOCKED',
    message: `"${path}" is being changed by process ${process.pid}; if there is none, remove "${path}.lock"`,
  })
  random.mock.restore()
  assert.deepEqual(fs.readdirSync(join(path, '..')).toSorted(), ['permissions.json', 'permissions.json.lock'])
})

test('a change from outside counts from the next reading on', async t => {
  const { file, write } = setup(t)
  await file.add([command('a')])
  write('{"version":1,"revision":7,"rules":[{"id":"mine","effect":"deny","kind":"foreign","what":"x"}]}')
  assert.deepEqual(await file.read().then(({ rules }) => rules.map(({ id }) => id)), ['mine'])
})

test('a broken file counts for nothing, says what is wrong with it, and is never written over', async t => {
  for (const [text, why] of [
    ['', /it is no JSON: /],
    ['[]', /it is no object/],
    ['{"version":2,"revision":0,"rules":[]}', /its version is not 1/],
    ['{"version":1,"revision":-1,"rules":[]}', /revision: is no number from 0/],
    ['{"version":1,"revision":0}', /rules: is no list/],
  ] as const) {
    const { file, path, write } = setup(t)
    write(text)
    const { rules, problems } = await file.read()
    assert.deepEqual(rules, [])
    assert.match(problems.join(), why)
    assert.match(problems.join(), /permissions\.json" counts for nothing: .*; mend or remove it$/)
    await assert.rejects(file.add([command('a')]), { code: 'PERMISSIONS_BROKEN', message: why })
    assert.equal(fs.readFileSync(path, 'utf8'), text)
  }
})

test('a file that everybody may write counts for nothing', { skip: platform() === 'win32' }, async t => {
  const { file, path } = setup(t)
  await file.add([command('a')])
  fs.chmodSync(path, 0o666)
  assert.match((await file.read()).problems.join(), /counts for nothing: everybody may write it; mend/)
  fs.chmodSync(path, 0o664)
  assert.equal((await file.read()).rules.length, 1)
})

test('what is no plain file, or far too large, counts for nothing and keeps nobody waiting', async t => {
  for (const [make, why] of [
    [(path: string) => execFileSync('mkfifo', [path]), /it is no file/],
    [(path: string) => fs.mkdirSync(path), /it is no file/],
    [(path: string) => fs.symlinkSync('/dev/zero', path), /it is no file/],
    [
      (path: string) => fs.writeFileSync(path, ' '.repeat(5_000_000)),
      /it has 5000000 bytes, more than 4194304/,
    ],
  ] as const) {
    const { file, path } = setup(t)
    fs.mkdirSync(join(path, '..'), { recursive: true })
    make(path)
    const { rules, problems } = await file.read()
    assert.deepEqual(rules, [])
    assert.match(problems.join(), why)
    await assert.rejects(file.add([command('a')]), { code: 'PERMISSIONS_BROKEN', message: why })
  }
})

test('a broken rule counts for nothing, and those beside it do; it stays in the file', async t => {
  const { file, path, write } = setup(t)
  const good = '{"id":"r1","effect":"allow","kind":"command","prefix":["a"]}'
  write(
    `{"version":1,"revision":3,"rules":[7,${good},{"id":"r2","effect":"allow","kind":"command","prefix":["b"],"until":1}]}`,
  )
  const { rules, problems } = await file.read()
  assert.deepEqual(
    rules.map(({ id }) => id),
    ['r1'],
  )
  assert.deepEqual(problems, [
    `rule 1 of "${path}" counts for nothing: it is no object; mend or remove it`,
    `rule 3 of "${path}" counts for nothing: until: a rule of kind command has no such field; mend or remove it`,
  ])
  await file.add([command('c')])
  assert.equal((JSON.parse(fs.readFileSync(path, 'utf8')) as { rules: unknown[] }).rules.length, 4)
})

test('a rule that cannot be meant is told with what is wrong', () => {
  const wrong: [unknown, string][] = [
    [null, 'it is no object'],
    [{}, 'effect: nothing is none of allow, ask, deny'],
    [{ effect: 'allow' }, 'kind: nothing is none of command, write, fetch, foreign'],
    [{ effect: 'allow', kind: 'toString' }, 'kind: "toString" is none of command, write, fetch, foreign'],
    [{ effect: 'allow', kind: 'command', prefix: [] }, 'prefix: [] is no list of words'],
    [
      { effect: 'allow', kind: 'command', prefix: ['a'], access: 'all' },
      'access: "all" is none of workspace-write, network, full-access',
    ],
    [
      { effect: 'deny', kind: 'command', prefix: ['a'], access: 'network' },
      'access: only a rule that allows has it',
    ],
    [{ effect: 'ask', kind: 'command', prefix: ['a'], exact: true }, 'exact: only a rule that allows has it'],
    [{ effect: 'allow', kind: 'write', path: 'a' }, 'path: "a" is no absolute path'],
    [
      { effect: 'allow', kind: 'write', path: '/a', access: 'network' },
      'access: a rule of kind write has no such field',
    ],
    [{ effect: 'allow', kind: 'fetch', host: 'https://a' }, 'host: "https://a" is no host'],
    [{ effect: 'allow', kind: 'fetch', host: 'A.org' }, 'host: "A.org" is no host'],
    [{ effect: 'allow', kind: 'fetch', host: '*' }, 'host: "*" is no host'],
    [{ effect: 'allow', kind: 'foreign', what: '' }, 'what: "" is no name'],
    [{ effect: 'allow', kind: 'foreign', what: 'a', folder: 'b' }, 'folder: "b" is no absolute path'],
  ]
  for (const [value, problem] of wrong) assert.deepEqual(readRule(value), { problem })
})

test('a rule is said in one line', () => {
  const said: [PermissionRule, string][] = [
    [
      {
        effect: 'allow',
        kind: 'command',
        prefix: ['git', 'commit', '-m', 'a b'],
        access: 'network',
        folder: '/w',
      },
      "allow git commit -m 'a b' …, with the network, in /w",
    ],
    [
      { effect: 'allow', kind: 'command', prefix: ['rm', 'x'], exact: true, access: 'full-access' },
      'allow rm x, without a sandbox, everywhere',
    ],
    [
      { effect: 'allow', kind: 'command', prefix: ['make'], access: 'workspace-write' },
      'allow make …, writing in the workspace, everywhere',
    ],
    [{ effect: 'ask', kind: 'write', path: '/srv/x/' }, 'ask write /srv/x/, everywhere'],
    [{ effect: 'deny', kind: 'fetch', host: 'x.org:81' }, 'deny fetch from x.org:81, everywhere'],
    [{ effect: 'deny', kind: 'foreign', what: 'db/drop' }, 'deny db/drop, everywhere'],
  ]
  for (const [rule, text] of said) {
    assert.deepEqual(readRule(rule), rule)
    assert.equal(ruleText(rule), text)
  }
})
