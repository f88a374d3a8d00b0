import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Context } from '@dsh/harness/kernel'
import { storeJsonl } from '@dsh/harness/plugins/store-jsonl'
import { SessionStore } from '@dsh/harness/session'
import { logOf, reply, userFact } from '@dsh/harness/testing'
import { SessionId } from '@dsh/protocol'
import { bench, canTerminal, sessionIn, unprivileged } from './dsh.ts'

/** Stores sessions with the prompts `task 1`, `task 2` and so on, the last of them last. */
async function store(home: string, count: number): Promise<void> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root: join(home, 'sessions') })
  for (let index = 1; index <= count; index++) {
    const header = { version: 0, id: SessionId(`s${index}`), createdAt: index, cwd: '/srv/shop' }
    await ctx.sessionPersistence.create(header)
    await ctx.sessionPersistence.append(header.id, logOf(['user/message', userFact(`task ${index}`)]))
    const log = ctx.sessionPersistence.locate(header) ?? ''
    utimesSync(log, index, index)
  }
  await ctx.dispose()
}

test('search finds what was said, in Chinese too, and names the events', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ script: [reply.text('连接池已经修好了'), reply.text('nothing of that')] })
  const zh = sessionIn((await dsh(['run', '请修复数据库连接池'])).stderr)
  await dsh(['run', 'something else'])
  assert.ok(!existsSync(join(home, 'cache/index.sqlite')), 'a run opens no index')
  const { code, stdout, stderr } = await dsh(['session', 'search', '连接池'])
  assert.deepEqual([code, stderr], [0, ''])
  const [head = '', ...hits] = stdout.trimEnd().split('\n')
  assert.match(head, /^请修复数据库连接池  \d{4}-\d\d-\d\d \d\d:\d\d  \S+\/work  2 events$/)
  assert.equal(hits.length, 2)
  assert.match(hits[0] ?? '', new RegExp(`^  ${zh}#\\d+  answer: 连接池已经修好了$`))
  assert.match(hits[1] ?? '', new RegExp(`^  ${zh}#\\d+  prompt: 请修复数据库连接池$`))
  assert.equal(statSync(join(home, 'cache/index.sqlite')).mode & 0o777, 0o600)

  const json = JSON.parse((await dsh(['session', 'search', '池', '--json'])).stdout) as Record<
    string,
    unknown
  >
  assert.deepEqual([json['id'], json['matched']], [zh, 2])
  const [hit] = json['hits'] as { snippet: unknown; type: unknown }[]
  assert.deepEqual(
    [hit?.type, hit?.snippet],
    ['assistant/message', { text: '连接池已经修好了', marks: [[2, 3]] }],
  )
  const none = await dsh(['session', 'search', 'quince\u001b[31m'])
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'nothing holds "quince␛[31m"\n'])
})

test('search looks into one folder where it is told to', async t => {
  const { dsh, provider, root } = bench(t)
  await provider({ fallback: reply.text('ok') })
  mkdirSync(join(root, 'other'))
  await dsh(['run', 'pear one'])
  await dsh(['run', '-C', join(root, 'other'), 'pear two'])
  const here = await dsh(['session', 'search', '--here', 'pear'], { cwd: join(root, 'other') })
  assert.match(here.stdout, /^pear two {2}/)
  assert.equal(here.stdout.split('\n').length, 3)
  const both = await dsh(['session', 'search', '--limit', '1', 'pear'])
  assert.deepEqual([both.stdout.split('\n').length, both.stderr], [3, 'there is more: --limit 5\n'])
  const listed = await dsh(['session', 'ls', '--here'])
  assert.match(listed.stdout, /^\S+ .* pear one .*\/work\n$/)
})

test('what a search is given wrongly is refused with what fits', async t => {
  const { dsh } = bench(t)
  const cases: [string[], RegExp][] = [
    [['search'], /^error MISSING_WORD: dsh session search needs TEXT\n/],
    [['search', ' '], /^error INVALID_QUERY: the query is empty\n {2}dsh session search TEXT\n$/],
    [['search', 'x', '--limit', '0'], /^error INVALID_NUMBER: --limit is a whole number from 1, found "0"\n/],
    [['search', 'x', '--limit', '1000'], /^error INVALID_NUMBER: the limit is 1000, expected 1 to 100\n/],
    [['ls', '--limit', 'x'], /^error INVALID_NUMBER: --limit is a whole number from 1, found "x"\n/],
  ]
  for (const [words, pattern] of cases) {
    const { code, stdout, stderr } = await dsh(['session', ...words])
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, pattern)
  }
})

test('what a session holds acts on no terminal, in a list or a search', async t => {
  const { dsh, provider } = bench(t)
  await provider({ fallback: reply.text('\u001b]0;owned\u0007 pear \u001b[2J\u202e end') })
  const hostile = `pear \u001b[31mred\u001b[0m \r\n new \u0007line \u202eback ${'x'.repeat(50_000)}`
  await dsh(['run', hostile])
  for (const words of [['ls'], ['search', 'pear'], ['search', '31m']]) {
    const { stdout } = await dsh(['session', ...words])
    assert.ok(stdout.length > 0 && stdout.length < 2000, words.join())
    assert.doesNotMatch(stdout, /(?!\n)[\p{Cc}\p{Bidi_Control}]/u)
  }
  assert.equal((await dsh(['session', 'ls'])).stdout.split('\n').length, 2)
})

test('at a terminal each place that was found stands out', { skip: !canTerminal }, async t => {
  const { dsh, terminal, provider } = bench(t)
  await provider({ fallback: reply.text('no') })
  await dsh(['run', 'a Pear here'])
  const { stdout } = await terminal(['session', 'search', 'pear']).ended
  assert.ok(stdout.includes('prompt: a \u001b[33mPear\u001b[39m here'), stdout)
  const plain = await terminal(['session', 'search', 'pear'], { env: { NO_COLOR: '1' } }).ended
  assert.ok(!plain.stdout.includes('\u001b'))
})

test('sessions that cannot be read are told of beside what was found', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const bad = sessionIn((await dsh(['run', 'pear one'])).stderr)
  const [log = ''] = logs()
  writeFileSync(log, 'no log at all')
  await dsh(['run', 'pear two'])
  const { code, stdout, stderr } = await dsh(['session', 'search', 'pear'])
  assert.equal(code, 0)
  assert.match(stdout, /^pear two /)
  assert.match(stderr, new RegExp(`^not searched: ${bad}: .+\\n$`))
})

test('an index that is gone, broken or not ours spoils no list', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  await dsh(['run', 'pear'])
  const index = join(home, 'cache/index.sqlite')
  // A list counts the turns of as much as it can read in time.
  const listed = async (): Promise<string> =>
    (await dsh(['session', 'ls'])).stdout.replaceAll(/ +\d+\+? turns? +/g, '  ')
  const list = await listed()
  assert.match(list, / pear /)
  for (const damage of [() => rmSync(index), () => writeFileSync(index, 'garbage '.repeat(2000))]) {
    damage()
    assert.equal(await listed(), list)
    assert.match((await dsh(['session', 'search', 'pear'])).stdout, /^pear /)
  }
  rmSync(index)
  const db = new DatabaseSync(index)
  db.exec('CREATE TABLE precious (a)')
  db.close()
  const before = readFileSync(index)
  const { code, stdout, stderr } = await dsh(['session', 'ls'])
  assert.deepEqual([code, stdout.split('\n').length], [0, 2])
  assert.match(stderr, /^the index cannot be used: this is the database of another program: /)
  const search = await dsh(['session', 'search', 'pear'])
  assert.deepEqual([search.code, search.stdout], [1, ''])
  assert.match(search.stderr, /^error SESSION_QUERY_INDEX_FAILED: .*\n {2}mv \S+ \S+\.old\n$/)
  assert.deepEqual(readFileSync(index), before)
})

test('where nothing can be written a list and a search work all the same', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  await dsh(['run', 'pear one'], unprivileged)
  const first = await dsh(['session', 'search', 'pear'], unprivileged)
  assert.match(first.stdout, /^pear one/, first.stderr)
  await dsh(['run', 'pear two'], unprivileged)
  chmodSync(join(home, 'cache'), 0o555)
  const listed = await dsh(['session', 'ls'], unprivileged)
  const { code, stdout } = await dsh(['session', 'search', 'pear'], unprivileged)
  chmodSync(join(home, 'cache'), 0o755)
  assert.match(listed.stdout, / pear two .*\n.* pear one /)
  assert.deepEqual([code, stdout.split('\n').filter(line => line.startsWith('pear')).length], [0, 2])
})

test('a model looks into other sessions of its folder where dsh.yml lets it', async t => {
  const { dsh, provider, home } = bench(t)
  const { requests } = await provider({
    script: [
      reply.text('the pears are ripe'),
      reply.toolCall('session_search', { query: 'PEARS' }),
      reply.text('They are.'),
    ],
  })
  const first = sessionIn((await dsh(['run', 'look at the tree'])).stderr)
  writeFileSync(join(home, 'dsh.yml'), '- id: session-query\n  config:\n    tools: true\n')
  const { code, stdout, stderr } = await dsh(['run', 'how are they?'])
  assert.deepEqual([code, stdout], [0, 'They are.\n'], stderr)
  const told = requests[2]?.body.messages?.find(({ role }) => role === 'tool')
  assert.match(
    String(told?.content),
    new RegExp(`^Sessions that hold "PEARS":\n1\\. ${first}, "look at the tree", `),
  )
  const names = (index: number): unknown[] =>
    ((requests[index]?.body.tools ?? []) as readonly { readonly function: { readonly name: string } }[]).map(
      tool => tool.function.name,
    )
  assert.ok(!names(0).includes('session_search') && names(1).includes('session_search'))
})

test('a list shows the newest 20 and says how to see the others', async t => {
  const { dsh, home } = bench(t)
  await store(home, 22)
  const first = await dsh(['session', 'ls'])
  assert.equal(first.stdout.trimEnd().split('\n').length, 20)
  assert.match(first.stdout, /^\S+ .* task 22 /)
  assert.equal(first.stderr, '20 of 22; all: dsh session ls --all\n')
  for (const [words, count] of [
    [['--all'], 22],
    [['--json'], 22],
    [['--limit', '3'], 3],
    [['--json', '--limit', '3'], 3],
  ] as const)
    assert.equal((await dsh(['session', 'ls', ...words])).stdout.trimEnd().split('\n').length, count)
})

test('an archived session is in the list only where it is asked for, with a mark', async t => {
  const { dsh, home } = bench(t)
  await store(home, 2)
  await dsh(['session', 'archive', 's2'])
  assert.match((await dsh(['session', 'ls'])).stdout, /^s1 .*\n$/)
  assert.match((await dsh(['session', 'ls', '--archived'])).stdout, /^s2 .*  \[archived\]\ns1 .*\n$/)
  assert.match((await dsh(['session', 'search', 'task'])).stdout, /s2#0/)
})

test('who goes on with the newest session is told of a newer one that cannot be read', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const old = sessionIn((await dsh(['run', 'one'])).stderr)
  const before = new Set(logs())
  const bad = sessionIn((await dsh(['run', 'two'])).stderr)
  const [log = ''] = logs().filter(path => !before.has(path))
  writeFileSync(log, 'no log at all')
  const again = await dsh(['run', '-c', 'three'])
  assert.equal(sessionIn(again.stderr), old)
  assert.match(again.stderr, new RegExp(`^note: session ${bad} may be newer and cannot be read: `, 'm'))
})

test('a session that another program has open is marked', async t => {
  const { dsh, start, provider } = bench(t)
  const gate = Promise.withResolvers<void>()
  const { push, received } = await provider()
  push(reply.text('late').gate(gate.promise))
  const running = start(['run', 'one'])
  await received(1)
  const { stdout } = await dsh(['session', 'ls'])
  assert.match(stdout, new RegExp(` one .*  \\[open in process ${running.child.pid}\\]\n$`))
  gate.resolve()
  await running.ended
  assert.doesNotMatch((await dsh(['session', 'ls'])).stdout, /open in/)
})
