import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, canTerminal, promptsIn, sessionIn } from './dsh.ts'

const secret = 'sk-0123456789abcdefghij'

test('a session that is exported whole and imported elsewhere goes on where it was', async t => {
  const { dsh, provider, home, work, root } = bench(t)
  const { requests } = await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', `one ${secret}`])).stderr)
  const file = join(root, 'one.jsonl')
  const out = await dsh(['session', 'export', id, '-o', file, '--full'])
  assert.equal(out.code, 0)
  assert.match(out.stderr, /^nothing was taken out: look before you give it away$/m)
  assert.equal(statSync(file).mode & 0o777, 0o600)

  const elsewhere = { env: { DSH_HOME: join(root, 'other-home') } }
  const back = await dsh(['session', 'import', file], elsewhere)
  assert.deepEqual([back.code, back.stdout], [0, `${id}\n`])
  const [cat, copy] = [await dsh(['session', 'cat', id]), await dsh(['session', 'cat', id], elsewhere)]
  assert.equal(copy.stdout, cat.stdout)
  await dsh(['run', '-r', id, 'two'], elsewhere)
  assert.deepEqual(promptsIn(requests[1]), [`one ${secret}`, 'two'])

  const twice = await dsh(['session', 'import', file])
  assert.equal(twice.code, 0)
  assert.match(twice.stderr, new RegExp(`^session (?!${id})\\S+, since ${id} is taken: \\d+ events$`, 'm'))
  assert.ok(existsSync(home) && existsSync(work))
})

test('an export for others holds no secret, in each format', async t => {
  const { dsh, provider, work } = bench(t)
  const { push } = await provider()
  push(
    reply.toolCall('bash', { command: `echo ${secret} $HOME`, description: 'tell' }),
    reply.text('**done**'),
  )
  const id = sessionIn((await dsh(['run', '--yes', 'say it'])).stderr)
  for (const format of ['md', 'html', 'jsonl']) {
    const { code, stdout, stderr } = await dsh(['session', 'export', id, '--format', format])
    assert.equal(code, 0, stderr)
    assert.ok(!stdout.includes(secret), format)
    assert.match(stdout, /\[redacted key\]/)
    assert.match(stderr, /^taken out: .*\d × key.*; look before you give it away$/m)
  }
  const file = join(work, 'x.html')
  await dsh(['session', 'export', id, '-o', file])
  assert.match(readFileSync(file, 'utf8'), /^<!doctype html>[^]*<strong>done<\/strong>/)
})

test('what cannot be exported or imported is refused with the way out, and replaces nothing', async t => {
  const { dsh, provider, work } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  writeFileSync(join(work, 'mine.md'), 'mine')
  writeFileSync(join(work, 'other.jsonl'), '{"type":"session"}\n')
  const cases: [string[], number, RegExp][] = [
    [['export', id, '-o', 'mine.md'], 2, /^error OUTPUT_FILE: "mine.md" is there already\n {2}rm mine.md\n/],
    [['export', id, '-o', 'none/x.md'], 2, /^error OUTPUT_FILE: "none\/x.md" cannot be written \(ENOENT\)\n/],
    [['export', id, '--format', 'pdf'], 2, /^error UNKNOWN_FORMAT: .*not as "pdf"\n/],
    [['export', id, '-o', 'x.pdf'], 2, /^error UNKNOWN_FORMAT: .*not as "pdf"\n/],
    [['export', 'nope'], 2, /^error UNKNOWN_SESSION: /],
    [
      ['import', 'other.jsonl'],
      2,
      /^error NOT_AN_EXPORT: "other.jsonl" cannot be imported: line 1 .*\n {2}dsh session export /,
    ],
    [['import', 'none.jsonl'], 2, /^error INPUT_FILE: "none.jsonl" .*ENOENT/],
    [['rm'], 2, /^error MISSING_WORD: /],
    [['rm', 'nope', '--yes'], 2, /^error UNKNOWN_SESSION: /],
    [
      ['rm', id],
      4,
      new RegExp(`^error NOT_REMOVED: nothing was removed\\n {2}dsh session rm ${id} --yes\\n`),
    ],
  ]
  for (const [words, exit, pattern] of cases) {
    const { code, stderr } = await dsh(['session', ...words])
    assert.equal(code, exit, words.join(' '))
    assert.match(stderr, pattern)
  }
  assert.equal(readFileSync(join(work, 'mine.md'), 'utf8'), 'mine')
  assert.equal((await dsh(['session', 'cat', id])).code, 0)
})

test('an import that was made to do harm is refused, or stored under an id that can be typed', async t => {
  const { dsh, provider, work, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const { stdout: whole } = await dsh(['session', 'export', id, '--full', '--format', 'jsonl'])
  const file = join(work, 'evil.jsonl')
  const import_ = (text: string) => {
    writeFileSync(file, text)
    return dsh(['session', 'import', file])
  }
  for (const odd of ['\\u001b[31m', '../../x', '--help', ' ', '..', 'a\\nb', 'x'.repeat(400)]) {
    const { code, stdout, stderr } = await import_(whole.replace(`"id":"${id}"`, `"id":"${odd}"`))
    assert.deepEqual([code, /^\w{10}\n$/.test(stdout)], [0, true], stderr)
    assert.match(stderr, /^session \w{10}, since the one in the file could not be typed: \d+ events\n$/)
  }
  const cases: [string, RegExp][] = [
    [whole.replace(/"id":"[^"]*",/, ''), /NOT_AN_EXPORT.* line 1 has no session id/],
    [whole.replace('"seq":0,', '"seq":0,"spill":[],'), /BAD_EXPORT_LINE.* line 2 is no event/],
    [whole.replace('{"type":"dsh/end"', '{"type":"dsh/end'), /BAD_EXPORT_LINE.* is not JSON/],
    [whole.split('\n').slice(0, -3).join('\n'), /BAD_EXPORT_LINE.* something cut it off/],
    [
      whole.replace('"createdAt":', '"createdAt":1e999, "x":'),
      /NOT_AN_EXPORT.* header.createdAt is Infinity/,
    ],
  ]
  for (const [text, pattern] of cases) {
    const { code, stdout, stderr } = await import_(text)
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, pattern)
  }
  const deep = await import_(
    whole.replace('"header":{', `"header":{"deep":${'['.repeat(50_000)}${']'.repeat(50_000)},`),
  )
  assert.equal(deep.code, 0, deep.stderr)
  assert.equal((await dsh(['session', 'verify', '--all'])).code, 0)
  assert.ok(existsSync(join(home, 'sessions')))
})

test('a removed session is gone with all its files, and one that runs is not removed', async t => {
  const { dsh, start, provider, logs } = bench(t)
  const gate = Promise.withResolvers<void>()
  const { push, received } = await provider()
  push(reply.text('ok'), reply.text('ok'), reply.text('late').gate(gate.promise))
  const first = sessionIn((await dsh(['run', 'one'])).stderr)
  const second = sessionIn((await dsh(['run', 'two'])).stderr)
  const running = start(['run', '-r', second, 'three'])
  await received(3)
  const held = await dsh(['session', 'rm', second, '--yes'])
  assert.deepEqual([held.code, logs().length], [1, 2])
  assert.match(held.stderr, /^error SESSION_HELD: /)
  gate.resolve()
  assert.equal((await running.ended).stdout, 'late\n')
  assert.equal((await dsh(['session', 'rm', first.slice(0, 9), second, '--yes'])).code, 0)
  assert.deepEqual(logs(), [])
  assert.match((await dsh(['session', 'ls'])).stderr, /^no sessions in /)
})

test('at a terminal a session is removed only after a yes', { skip: !canTerminal }, async t => {
  const { dsh, terminal, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  for (const [answer, left] of [
    ['n', 1],
    ['y', 0],
  ] as const) {
    const started = terminal(['session', 'rm', id])
    await started.said(/\? remove \S+ "one" for good {2}y or n: /)
    started.child.stdin.write(`\n${answer}\n`)
    const { code } = await started.ended
    assert.deepEqual([code, logs().length], [left === 1 ? 4 : 0, left])
  }
})

test('an archived session keeps its log and its readers, and work on it goes on', async t => {
  const { dsh, home, provider } = bench(t)
  const { requests } = await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const archived = await dsh(['session', 'archive', id])
  assert.deepEqual([archived.code, archived.stderr], [0, `session ${id} is left out of lists\n`])
  const listed = await dsh(['session', 'ls'])
  assert.deepEqual(
    [listed.stdout, listed.stderr],
    ['', `no sessions in ${home} but archived ones: dsh session ls --archived\n`],
  )
  assert.match((await dsh(['session', 'ls', '--archived'])).stdout, new RegExp(`^${id} .*\\[archived\\]`))
  assert.match((await dsh(['session', 'show', id])).stdout, /^› one\n/)
  await dsh(['run', '-r', id, 'two'])
  assert.deepEqual(promptsIn(requests[1]), ['one', 'two'])
  assert.match((await dsh(['session', 'ls'])).stdout, new RegExp(`^${id} (?!.*archived)`))
  await dsh(['session', 'archive', id])
  assert.equal((await dsh(['session', 'archive', id, '--undo'])).stderr, `session ${id} is back in lists\n`)
})
