import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, jsonLines, promptsIn, sessionIn } from './dsh.ts'

test('-c goes on with the newest session of the folder, -r with the one it names', async t => {
  const { dsh, provider, root } = bench(t)
  const { requests } = await provider({ fallback: reply.text('ok') })
  mkdirSync(join(root, 'other'))
  const first = sessionIn((await dsh(['run', 'one'])).stderr)
  const second = sessionIn((await dsh(['run', 'two'])).stderr)
  await dsh(['run', '-C', join(root, 'other'), 'elsewhere'])

  const again = await dsh(['run', '-c', 'three'])
  assert.equal(sessionIn(again.stderr), second)
  assert.deepEqual(promptsIn(requests[3]), ['two', 'three'])

  const named = await dsh(['run', '-r', first, 'four'], { cwd: join(root, 'other') })
  assert.equal(sessionIn(named.stderr), first)
  assert.deepEqual(promptsIn(requests[4]), ['one', 'four'])
  assert.equal((await dsh(['run', '-c', 'five'])).code, 0)
  assert.deepEqual(promptsIn(requests[5]), ['one', 'four', 'five'])
})

test('a folder whose name has a line break takes one line of the list', async t => {
  const { dsh, provider, root } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const folder = join(root, 'a\n0000000000  2026-11-30 14:05  not there\u001b[31m')
  mkdirSync(folder)
  const id = sessionIn((await dsh(['run', 'one'], { cwd: folder })).stderr)
  const { stdout } = await dsh(['session', 'ls'])
  assert.match(stdout, new RegExp(`^${id}  .* ⏎ 0000000000  2026-11-30 14:05  not there␛\\[31m\n$`))
})

test('a session keeps its model, unless -m says otherwise', async t => {
  const { dsh, provider } = bench(t)
  const { requests } = await provider({ fallback: reply.text('ok') })
  await dsh(['run', '-m', 'deepseek/deepseek-v4-pro', 'one'])
  await dsh(['run', '-m', 'deepseek/deepseek-flash', 'in between'])
  const [, pro] = (await dsh(['session', 'ls', '--json'])).stdout.trim().split('\n')
  const { id } = JSON.parse(pro ?? '') as { id: string }
  await dsh(['run', '-r', id, 'two'])
  await dsh(['run', '-r', id, '-m', 'deepseek/other', 'three'])
  assert.deepEqual(
    requests.map(({ body }) => body.model),
    ['deepseek-v4-pro', 'deepseek-flash', 'deepseek-v4-pro', 'other'],
  )
})

test('the beginning of an id is enough where it is the only one', async t => {
  const { dsh, provider } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const ids = [sessionIn((await dsh(['run', 'one'])).stderr), sessionIn((await dsh(['run', 'two'])).stderr)]
  const [first = '', second = ''] = ids
  let shared = 0
  while (first[shared] === second[shared]) shared++
  assert.equal(sessionIn((await dsh(['run', '-r', second.slice(0, shared + 1), 'go'])).stderr), second)

  const ambiguous = await dsh(['run', '-r', second.slice(0, shared), 'go'])
  assert.deepEqual([ambiguous.code, ambiguous.stdout], [2, ''])
  assert.match(ambiguous.stderr, /^error AMBIGUOUS_SESSION: 2 sessions begin with "\w*": /m)
  for (const id of ids) assert.ok(ambiguous.stderr.includes(id))

  const unknown = await dsh(['run', '-r', 'zzz', 'go'])
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /^error UNKNOWN_SESSION: no session begins with "zzz"\n {2}dsh session ls\n/m)
})

test('there is nothing to go on with in a new folder, and a session keeps its own', async t => {
  const { dsh, provider, root } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const none = await dsh(['run', '-c', 'go'])
  assert.equal(none.code, 2)
  assert.match(none.stderr, /^error NO_SESSION: there is no session of ".*\/work" to go on with\n/m)

  mkdirSync(join(root, 'gone'))
  mkdirSync(join(root, 'other'))
  const id = sessionIn((await dsh(['run', '-C', join(root, 'gone'), 'one'])).stderr)
  const moved = await dsh(['run', '-r', id, '-C', join(root, 'other'), 'go'])
  assert.equal(moved.code, 2)
  assert.match(
    moved.stderr,
    /^error FOLDER_CONFLICT: session \w+ belongs to ".*\/gone", not to ".*\/other"\n/m,
  )
  rmSync(join(root, 'gone'), { recursive: true })
  const homeless = await dsh(['run', '-r', id, 'go'])
  assert.equal(homeless.code, 2)
  assert.match(
    homeless.stderr,
    /^error SESSION_FOLDER_GONE: session \w+: there is no folder ".*\/gone"\n {2}mkdir -p /m,
  )
  const both = await dsh(['run', '-c', '-r', id, 'go'])
  assert.match(both.stderr, /^error OPTION_CONFLICT: /)
})

test('ls lists the sessions of all folders, newest first', async t => {
  const { dsh, provider, root, work } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const empty = await dsh(['session', 'ls'])
  assert.deepEqual([empty.code, empty.stdout], [0, ''])
  mkdirSync(join(root, 'other'))
  const first = sessionIn((await dsh(['run', 'one'])).stderr)
  const second = sessionIn((await dsh(['run', '-C', join(root, 'other'), 'two'])).stderr)
  const { stdout } = await dsh(['session', 'ls'])
  const lines = stdout.trim().split('\n')
  assert.match(
    lines[0] ?? '',
    new RegExp(`^${second}  \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d     1 turn   two +\\S*/other$`),
  )
  assert.match(lines[1] ?? '', new RegExp(`^${first}  .*  one +\\S*/work$`))
  const rows = (await dsh(['session', 'ls', '--json'])).stdout.trim().split('\n')
  const parsed = rows.map(row => JSON.parse(row) as Record<string, unknown>)
  assert.deepEqual(
    parsed.map(({ id }) => id),
    [second, first],
  )
  assert.equal(parsed[1]?.['cwd'], work)
  assert.deepEqual(
    parsed.map(({ title, titled, firstPrompt, turns, model }) => [title, titled, firstPrompt, turns, model]),
    ['two', 'one'].map(prompt => [prompt, false, prompt, 1, 'deepseek/deepseek-flash']),
  )
  assert.ok(parsed.every(({ bytes }) => Number(bytes) > 0))
  assert.ok(parsed.every(({ updatedAt }) => Number.isInteger(updatedAt)))
  await dsh(['run', '-r', first, 'again'])
  assert.ok((await dsh(['session', 'ls'])).stdout.startsWith(first))
})

test('show prints the transcript, cat the events', async t => {
  const { dsh, provider, work } = bench(t)
  writeFileSync(join(work, 'a.txt'), 'one\n')
  await provider({ script: [reply.toolCall('read', { file_path: 'a.txt' }), reply.text('It says one.')] })
  const id = sessionIn((await dsh(['run', 'What does a.txt say?'])).stderr)
  const show = await dsh(['session', 'show', id.slice(0, 9)])
  assert.match(show.stdout, /^› What does a\.txt say\?\n● read a\.txt \(\d+ ms\)\nIt says one\.\n$/)
  const cat = await dsh(['session', 'cat', id])
  const events = cat.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { seq: number; type: string })
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, at) => at),
  )
  assert.equal(events.at(-1)?.type, 'turn/end')
})

test('wrong words after session are refused with what fits', async t => {
  const { dsh } = bench(t)
  const cases: [string[], RegExp][] = [
    [[], /^error UNKNOWN_ACTION: dsh session does ls, .* or .*; found nothing\n {2}dsh session --help\n$/],
    [['lst'], /^error UNKNOWN_ACTION: .*found "lst"; did you mean "ls"\?\n/],
    [['show'], /^error MISSING_WORD: dsh session show needs ID\n {2}dsh session show ID \[-f\]\n$/],
    [['ls', 'x'], /^error UNEXPECTED_WORD: /],
    [['cat', 'a', 'b'], /^error UNEXPECTED_WORD: dsh session cat takes no "b"\n/],
    [['cat', 'nope'], /^error UNKNOWN_SESSION: /],
    [['show', 'a', '--json'], /^error UNKNOWN_OPTION: dsh session show has no option --json\n/],
  ]
  for (const [words, pattern] of cases) {
    const { code, stdout, stderr } = await dsh(['session', ...words])
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, pattern)
  }
})

test('of two that write one session the second is told who has it, and the first goes on', async t => {
  const { dsh, start, provider } = bench(t)
  const gate = Promise.withResolvers<void>()
  const { push, received } = await provider()
  push(reply.text('ok'), reply.text('first done').gate(gate.promise), reply.text('after'))
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const first = start(['run', '-r', id, 'two'])
  await received(2)
  const second = await dsh(['run', '-r', id, 'three'])
  assert.deepEqual([second.code, second.stdout], [1, ''])
  assert.match(second.stderr, /^error SESSION_HELD: .*\d+.*\n/m)
  assert.ok(second.stderr.includes(String(first.child.pid)), second.stderr)
  const shown = await dsh(['session', 'show', id])
  assert.equal(shown.code, 0)
  gate.resolve()
  const { code, stdout } = await first.ended
  assert.deepEqual([code, stdout], [0, 'first done\n'])
  assert.equal((await dsh(['run', '-r', id, 'three'])).stdout, 'after\n')
})

test('a torn tail is cut off with a notice, and the session goes on', async t => {
  const { dsh, provider, logs } = bench(t)
  const { requests } = await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const [log = ''] = logs()
  const whole = statSync(log).size
  appendFileSync(log, Buffer.alloc(100))
  const listed = await dsh(['session', 'cat', id])
  assert.equal(listed.code, 0)
  assert.equal(statSync(log).size, whole + 100)
  const { code, stderr } = await dsh(['run', '-r', id, 'two'])
  assert.equal(code, 0, stderr)
  assert.deepEqual(promptsIn(requests[1]), ['one', 'two'])
  assert.match(stderr, /100 bytes/)
  assert.ok(
    readdirSync(dirname(log)).some(name => readFileSync(join(dirname(log), name)).equals(Buffer.alloc(100))),
  )
})

test('a damaged session is a row with a reason, and spoils no other', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const bad = sessionIn((await dsh(['run', 'one'])).stderr)
  const [log = ''] = logs()
  writeFileSync(log, 'no log at all')
  const good = sessionIn((await dsh(['run', 'two'])).stderr)
  const { code, stdout } = await dsh(['session', 'ls'])
  assert.equal(code, 0)
  assert.match(stdout, new RegExp(`^${good}  .*\\n${bad}  unreadable: `))
  const resumed = await dsh(['run', '-r', bad, 'go'])
  assert.equal(resumed.code, 1)
  assert.match(resumed.stderr, /^error SESSION_DAMAGED: /m)
  assert.equal(readFileSync(log, 'utf8'), 'no log at all')
})

test('an interrupted turn is closed, and the next run goes on behind it', async t => {
  const { dsh, start, provider } = bench(t)
  const { received, push, requests } = await provider()
  push(reply.text('never heard').gate(new Promise(() => {})), reply.text('ok'))
  const first = start(['run', '--json', 'one'])
  await received(1)
  first.child.kill('SIGKILL')
  await first.ended
  const { code, stdout } = await dsh(['run', '-c', '--json', 'two'])
  assert.equal(code, 0)
  assert.deepEqual(promptsIn(requests[1]), ['one', 'two'])
  const id = String(jsonLines(stdout).result['sessionId'])
  assert.match((await dsh(['session', 'show', id])).stdout, /^› one\n■ interrupted: .*\n› two\nok\n$/)
})
