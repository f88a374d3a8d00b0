import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, sessionIn } from './dsh.ts'

test('a run has a title from its prompt, and its counts are there without its log', async t => {
  const { dsh, provider, work, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'Fix the login test, and then run all'])).stderr)
  const { stdout } = await dsh(['session', 'stats', id])
  const [head, folder, turns] = stdout.split('\n')
  assert.equal(head, `${id}  Fix the login test, and`)
  assert.equal(folder, `  folder   ${work}`)
  assert.equal(turns, '  turns    1, with 1 step')
  const one = JSON.parse((await dsh(['session', 'stats', id, '--json'])).stdout) as Record<string, unknown>
  assert.deepEqual(
    [one['id'], one['title'], one['turns'], one['steps']],
    [id, 'Fix the login test, and', 1, 1],
  )
  const kept = join(home, 'cache/projections')
  const [file = '', ...others] = readdirSync(kept)
  assert.deepEqual(others, [])
  assert.deepEqual(
    [kept, join(kept, file)].map(path => statSync(path).mode & 0o777),
    [0o700, 0o600],
  )
})

test('all sessions are counted together, one that cannot be read is named, and what is removed is forgotten', async t => {
  const { dsh, provider, home, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  for (const prompt of ['one', 'two', 'three']) await dsh(['run', prompt])
  const folder = join(home, 'cache/projections')
  const [first = '', second = ''] = logs()
  rmSync(join(first, '..'), { recursive: true })
  writeFileSync(second, 'no log')
  writeFileSync(join(folder, readdirSync(folder)[0] ?? ''), '{"format":1')
  const { stdout, stderr, code } = await dsh(['session', 'stats'])
  assert.equal(code, 0)
  assert.match(stdout, /^1 session · 1 turn · 1 step · /)
  assert.match(stderr, /^note: session \S+ is left out: /)
  const all = JSON.parse((await dsh(['session', 'stats', '--json'])).stdout) as Record<string, unknown>
  assert.equal(all['sessions'], 1)
  assert.equal((all['unreadable'] as string[]).length, 1)
  assert.deepEqual(Object.keys(all['models'] as object), ['deepseek/deepseek-flash'])
  assert.ok(readdirSync(folder).length <= 2)
})

test('without the cache the counts are the same', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  await dsh(['run', 'one'])
  const before = (await dsh(['session', 'stats'])).stdout
  rmSync(join(home, 'cache'), { recursive: true })
  assert.equal((await dsh(['session', 'stats'])).stdout, before)
  assert.ok(existsSync(join(home, 'cache/projections')))
})

test('after a kill in the middle of a turn the counts are those of the log', { timeout: 30_000 }, async t => {
  const { dsh, provider, start, home } = bench(t)
  const { received, push } = await provider()
  push(reply.text('ok'), reply.text('some words of an answer').gate(new Promise<never>(() => {}), 2))
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const running = start(['run', '--json', '-r', id, 'two'])
  await received(2)
  await running.said(/text-delta/)
  running.child.kill('SIGKILL')
  await running.ended
  const warm = (await dsh(['session', 'stats', id, '--json'])).stdout
  rmSync(join(home, 'cache'), { recursive: true })
  assert.equal((await dsh(['session', 'stats', id, '--json'])).stdout, warm)
  assert.equal((JSON.parse(warm) as { turns: number }).turns, 1)
})

test('a person gives a session a title, which stays', async t => {
  const { dsh, provider } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const named = await dsh(['session', 'rename', id, 'My', 'own name'])
  assert.deepEqual([named.code, named.stderr], [0, `session ${id} is called My own name\n`])
  await dsh(['run', '-r', id, 'two'])
  assert.match((await dsh(['session', 'stats', id])).stdout, new RegExp(`^${id}  My own name\n`))
  assert.match((await dsh(['session', 'rename', id, ' '])).stderr, /^error INVALID_TITLE: /)
  assert.match(
    (await dsh(['session', 'rename', id])).stderr,
    /^error MISSING_WORD: dsh session rename needs TITLE\n/,
  )
})

test('a session that is being worked on is not renamed from outside', { timeout: 30_000 }, async t => {
  const { dsh, provider, start } = bench(t)
  const { received, push } = await provider()
  push(reply.text('some words of an answer').gate(new Promise<never>(() => {}), 2))
  const running = start(['run', '--json', 'one'])
  await received(1)
  await running.said(/text-delta/)
  const { id } = JSON.parse((await dsh(['session', 'ls', '--json'])).stdout) as { id: string }
  const { code, stderr } = await dsh(['session', 'rename', id, 'Mine'])
  assert.equal(code, 1)
  assert.match(stderr, /^error SESSION_HELD: /)
  running.child.kill('SIGTERM')
  await running.ended
})

test('prune removes what is archived or old, after it was shown', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const [first, second, third] = await Promise.all(
    ['one', 'two', 'three'].map(async prompt => sessionIn((await dsh(['run', prompt])).stderr)),
  )
  await dsh(['session', 'archive', String(first)])
  const old = logs().find(log => log.includes(`/${second}/`)) ?? ''
  const longAgo = Date.now() / 1000 - 40 * 86_400
  utimesSync(old, longAgo, longAgo)

  const dry = await dsh(['session', 'prune', '--dry-run'])
  assert.match(dry.stdout, new RegExp(`^${first}  [-0-9]+ [:0-9]+  [.0-9]+ K?B  archived\n$`))
  const unasked = await dsh(['session', 'prune', '--older-than', '30'])
  assert.equal(unasked.code, 4)
  assert.match(
    unasked.stderr,
    /^error NOT_REMOVED: nothing was removed\n {2}dsh session prune --older-than 30 --yes\n/m,
  )
  assert.equal(logs().length, 3)
  const done = await dsh(['session', 'prune', '--older-than', '30', '--yes'])
  assert.equal(done.code, 0)
  assert.match(done.stdout, new RegExp(`^${second}  .*\n${first}  .* archived\n$`))
  assert.match(done.stderr, /^removed: 2 sessions, [.0-9]+ K?B\n$/)
  assert.deepEqual(
    logs().map(log => log.split('/').at(-2)),
    [third],
  )
  const again = await dsh(['session', 'prune', '--older-than', '30', '--yes'])
  assert.deepEqual([again.code, again.stdout, again.stderr], [0, '', 'nothing to remove\n'])
})

test('retention of dsh.yml keeps as many sessions as it says', async t => {
  const { dsh, provider, home, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  for (const prompt of ['one', 'two']) await dsh(['run', prompt])
  writeFileSync(join(home, 'dsh.yml'), '- name: retention\n  config:\n    maxSessions: 2\n')
  const last = sessionIn((await dsh(['run', 'three'])).stderr)
  assert.equal(logs().length, 2)
  assert.ok(logs().some(log => log.includes(`/${last}/`)))
})
