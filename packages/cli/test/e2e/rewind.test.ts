import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLocalProcesses } from '@dsh/harness/plugins/persistence'
import { reply } from '@dsh/harness/testing'
import { bench, canTerminal, jsonLines, promptsIn, sessionIn } from './dsh.ts'
import type { Bench } from './dsh.ts'

/** A session of two turns: the first makes b and changes a, the second takes both away. */
async function twoTurns({ dsh, provider, work }: Bench) {
  const shell = (command: string) => reply.toolCall('bash', { command, description: 'Do it' })
  const { requests } = await provider({
    script: [shell('echo two > a; echo b > b'), reply.text('ok'), shell('rm a b'), reply.text('ok')],
    fallback: reply.text('ok'),
  })
  writeFileSync(join(work, 'a'), 'one\n')
  const first = await dsh(['run', '--yes', 'make it'])
  assert.equal(first.code, 0, first.stderr)
  await dsh(['run', '--yes', '-c', 'take it away'])
  return { id: sessionIn(first.stderr), requests }
}

test('points are listed by what they undo, shown before, taken back and brought again', async t => {
  const place = bench(t)
  const { dsh, work } = place
  const { id, requests } = await twoTurns(place)
  const list = await dsh(['rewind'])
  assert.equal(list.code, 0, list.stderr)
  const rows = list.stdout.trimEnd().split('\n')
  assert.deepEqual(
    rows.map(row => row.replace(/#\d+/, '#N').replaceAll(/ {2,}/g, '  ').trim()),
    [
      '#N  user  "make it"  2 files  +2 -1',
      '#N  bash  echo two > a; echo b > b  2 files  +2 -1',
      '#N  user  "take it away"  2 files  +0 -2',
      '#N  bash  rm a b  2 files  +0 -2',
    ],
  )
  const second = /#(\d+) +user +"take/.exec(list.stdout)?.[1] ?? ''
  const shown = await dsh(['rewind', `e${second}`, '--preview'])
  assert.match(
    shown.stdout,
    /^recreate {2}a {2}\+1 -0\nrecreate {2}b {2}\+1 -0\nthe conversation goes on in a new session, with the events up to \d+\n$/,
  )
  assert.ok(!existsSync(join(work, 'a')))

  const unsure = await dsh(['rewind', id, second])
  assert.equal(unsure.code, 4)
  assert.match(
    unsure.stderr,
    new RegExp(`^error NOT_CONFIRMED: nothing was changed\n {2}.* rewind ${id} ${second} --yes\n$`, 'm'),
  )
  assert.ok(!existsSync(join(work, 'a')))

  const done = await dsh(['rewind', id, `#${second}`, '--yes'])
  assert.equal(done.code, 0, done.stderr)
  assert.equal(readFileSync(join(work, 'a'), 'utf8'), 'two\n')
  const child = /^session (\w+)$/m.exec(done.stdout)?.[1] ?? ''
  await dsh(['run', '-r', child, 'go on'])
  assert.deepEqual(promptsIn(requests.at(-1)), ['make it', 'go on'])

  const undone = await dsh(['rewind', child, '--undo', '--yes', '--json'])
  assert.equal(undone.code, 0, undone.stderr)
  const [preview, result] = undone.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual([preview?.['type'], result?.['type'], result?.['session']], ['preview', 'result', id])
  assert.ok(!existsSync(join(work, 'a')))
  const verified = await dsh(['session', 'cat', child])
  assert.match(verified.stdout, /"type":"rewind\/applied"/)
})

test('what the user writes while a request of the turn is out is kept, named, and overwritten only when asked', async t => {
  const { dsh, provider, work } = bench(t)
  const shell = (command: string) => reply.toolCall('bash', { command, description: 'Do it' })
  const mine = join(work, 'mine')
  const { requests } = await provider({
    script: [
      shell('echo two > a'),
      () => {
        writeFileSync(mine, 'mine\n')
        return shell('echo b > b')
      },
      () => {
        rmSync(join(work, 'other'))
        return reply.text('ok')
      },
    ],
  })
  for (const name of ['a', 'mine', 'other']) writeFileSync(join(work, name), 'one\n')
  const run = await dsh(['run', '--yes', '--json', 'make it'])
  assert.deepEqual([run.code, requests.length], [0, 3], run.stderr)
  assert.deepEqual(jsonLines(run.stdout).result['changedFiles'], ['a', 'b'])
  const list = (await dsh(['rewind'])).stdout
  assert.deepEqual(
    list
      .trimEnd()
      .split('\n')
      .map(row => row.replace(/#\d+/, '#N').replaceAll(/ {2,}/g, '  ').trim()),
    [
      '#N  user  "make it"  2 files  +2 -1',
      '#N  bash  echo two > a  1 file  +1 -1',
      '#N  bash  echo b > b  1 file  +1 -0',
    ],
  )
  const prompt = /#(\d+) +user/.exec(list)?.[1] ?? ''
  const id = sessionIn(run.stderr)
  const shown = await dsh(['rewind', id, prompt, '--files', '--preview'])
  const kept = '! keep    mine  changed by you since\n! keep    other  changed by you since\n'
  assert.equal(shown.stdout, `restore   a  +1 -1\ndelete    b  +0 -1\n${kept}`, shown.stderr)
  const done = await dsh(['rewind', id, prompt, '--files', '--yes'])
  assert.equal(done.code, 0, done.stderr)
  const files = (): (string | undefined)[] =>
    ['a', 'b', 'mine', 'other'].map(name => {
      const path = join(work, name)
      return existsSync(path) ? readFileSync(path, 'utf8') : undefined
    })
  assert.deepEqual(files(), ['one\n', undefined, 'mine\n', undefined])
  assert.equal((await dsh(['rewind', id, '--undo', '--yes'])).code, 0)
  assert.deepEqual(files(), ['two\n', 'b\n', 'mine\n', undefined])
  await dsh(['rewind', id, prompt, '--files', '--yes', '--overwrite'])
  assert.deepEqual(files(), ['one\n', undefined, 'one\n', 'one\n'])
})

test('a folder that is gone, an event that is not there and a session without points are named', async t => {
  const place = bench(t)
  const { dsh, work, root } = place
  const { id } = await twoTurns(place)
  const missing = await dsh(['rewind', id, '99999', '--yes'])
  assert.equal(missing.code, 2)
  assert.match(
    missing.stderr,
    new RegExp(`^error UNKNOWN_EVENT: session ${id} has no event "99999"; it has 0 to \\d+\n`, 'm'),
  )
  const nothing = await dsh(['rewind', id, '--undo'])
  assert.match(nothing.stderr, /^error REWIND_NOTHING_TO_UNDO: /m)
  const both = await dsh(['rewind', id, '5', '--files', '--conversation'])
  assert.deepEqual([both.code, /^error CONFLICTING_OPTIONS: /m.test(both.stderr)], [2, true])
  renameSync(work, join(root, 'moved'))
  const gone = await dsh(['rewind', id, '5', '--yes'], { cwd: root })
  assert.equal(gone.code, 2)
  assert.match(
    gone.stderr,
    new RegExp(`^error SESSION_FOLDER_GONE: the folder "${work}" of session ${id} is not there$`, 'm'),
  )
})

test('a session that another program has open is refused, and named', async t => {
  const place = bench(t)
  const { dsh, start, work } = place
  const { id } = await twoTurns(place)
  await place.provider({ script: [reply.nothing('hold')], fallback: reply.text('ok') })
  const running = start(['run', '-r', id, 'wait'], { input: null })
  await running.said(/session \w+ · /)
  while (!/SESSION_HELD/.test((await dsh(['rewind', id, '5', '--yes'])).stderr))
    assert.equal(running.child.exitCode, null)
  const refused = await dsh(['rewind', id, '5', '--yes'])
  assert.match(
    refused.stderr,
    new RegExp(`^error SESSION_HELD: session ${id} is open in process \\d+\n`, 'm'),
  )
  assert.ok(!existsSync(join(work, 'a')))
})

test('a fork has the events up to the one that is named, and goes on', async t => {
  const place = bench(t)
  const { dsh } = place
  const { id, requests } = await twoTurns(place)
  const list = await dsh(['rewind', id])
  const call = /#(\d+) +bash +rm/.exec(list.stdout)?.[1] ?? ''
  const forked = await dsh(['session', 'fork', id, call])
  assert.equal(forked.code, 0, forked.stderr)
  const child = forked.stdout.trim()
  assert.equal((await dsh(['run', '-r', child, 'go on'])).code, 0)
  assert.deepEqual(promptsIn(requests.at(-1)), ['make it', 'take it away', 'go on'])
  const wrong = await dsh(['session', 'fork', id, 'x'])
  assert.deepEqual([wrong.code, /^error UNKNOWN_EVENT: /m.test(wrong.stderr)], [2, true])
})

test('at a terminal the person is asked', { skip: !canTerminal }, async t => {
  const place = bench(t)
  const { dsh, terminal, work } = place
  await twoTurns(place)
  const second = /#(\d+) +user +"take/.exec((await dsh(['rewind'])).stdout)?.[1] ?? ''
  const asked = terminal(['rewind', second, '--files'])
  await asked.said(/\? take 2 files back {2}y or n: /)
  asked.child.stdin.write('y\n')
  assert.equal((await asked.ended).code, 0)
  assert.equal(readFileSync(join(work, 'a'), 'utf8'), 'two\n')
})

test('a session that is removed for good takes its restore points along, packed ones too', async t => {
  const place = bench(t)
  const { dsh, home } = place
  const { id } = await twoTurns(place)
  const [store = ''] = globSync(join(home, 'restore/*'))
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: store, encoding: 'utf8', timeout: 30_000 })
  assert.equal(git('for-each-ref').split('\n').length, 2)
  git('pack-refs', '--all')
  const { code, stderr } = await dsh(['session', 'rm', id, '--yes'])
  assert.deepEqual([code, git('for-each-ref')], [0, ''], stderr)
})

test('where the session of before was removed, an undo still brings the files again', async t => {
  const place = bench(t)
  const { dsh, work } = place
  const { id } = await twoTurns(place)
  const second = /#(\d+) +user +"take/.exec((await dsh(['rewind'])).stdout)?.[1] ?? ''
  const { stdout } = await dsh(['rewind', id, second, '--yes'])
  const child = /^session (\w+)$/m.exec(stdout)?.[1] ?? ''
  await dsh(['session', 'rm', id, '--yes'])
  const refused = await dsh(['rewind', child, '--undo', '--yes'])
  assert.match(
    refused.stderr,
    new RegExp(`^error SESSION_NOT_FOUND: .*"${id}".*\n {2}.* rewind ${child} --undo --files\n$`, 'm'),
  )
  assert.ok(existsSync(join(work, 'a')))
  const undone = await dsh(['rewind', child, '--undo', '--files', '--yes'])
  assert.deepEqual([undone.code, existsSync(join(work, 'a'))], [0, false], undone.stderr)
  const nothing = await dsh(['rewind', child, '--undo', '--conversation', '--yes'])
  assert.match(nothing.stderr, /^error REWIND_NOTHING_TO_UNDO: .* took back the files alone$/m)
})

test('a conversation is taken back where no files can be: without git, and without the folder', async t => {
  const place = bench(t)
  const { dsh, work, root } = place
  const { id } = await twoTurns(place)
  const second = /#(\d+) +user +"take/.exec((await dsh(['rewind'])).stdout)?.[1] ?? ''
  const conversation = ['rewind', id, second, '--conversation', '--yes']
  const off = await dsh(conversation, { env: { PATH: root } })
  assert.deepEqual([off.code, /^session \w+$/m.test(off.stdout)], [0, true], off.stderr)
  renameSync(work, join(root, 'moved'))
  const gone = await dsh(conversation, { cwd: root })
  assert.deepEqual([gone.code, /^session \w+$/m.test(gone.stdout)], [0, true], gone.stderr)
})

test('a rewind that was broken off is completed before it is undone, and before a list', async t => {
  const place = bench(t)
  const { dsh, home, work } = place
  const { id } = await twoTurns(place)
  const rows = (await dsh(['rewind', '--json'])).stdout.trimEnd().split('\n')
  const { point } = JSON.parse(rows.at(-1) ?? '') as { point: { commit: string } }
  const to = { kind: '100644', mode: 0o644, oid: 'f719efd430d52bcfc8566a43b2eb655688d38871', size: 4 }
  const [store = ''] = globSync(join(home, 'restore/*'))
  const breakOff = (nonce: string): void =>
    writeFileSync(
      join(store, 'rewind.json'),
      JSON.stringify({
        owner: { ...createLocalProcesses().self(), boot: 'an earlier one' },
        nonce,
        scope: 'files',
        from: { session: id, seq: nonce.length },
        to: { session: id, seq: 4 },
        session: id,
        plan: { steps: [{ path: 'a', action: 'recreate', to }], kept: [], leaving: [], coming: [] },
        backup: point.commit,
      }),
    )
  breakOff('one')
  const undone = await dsh(['rewind', id, '--undo', '--yes'])
  assert.equal(undone.code, 0, undone.stderr)
  assert.match(undone.stderr, /^note: a rewind of ".*" that was broken off has been completed; /)
  assert.match(undone.stdout, /^delete {4}a {2}\+0 -1\n1 file taken back, 0 kept\n/)
  assert.ok(!existsSync(join(work, 'a')))
  breakOff('the second')
  const list = await dsh(['rewind', id])
  assert.deepEqual([list.code, list.stdout.match(/ rewind /g)?.length], [0, 3], list.stderr)
  assert.equal(readFileSync(join(work, 'a'), 'utf8'), 'two\n')
})

test('a rewind that finds nothing to do takes no undo away', async t => {
  const place = bench(t)
  const { dsh, work } = place
  await twoTurns(place)
  const second = /#(\d+) +user +"take/.exec((await dsh(['rewind'])).stdout)?.[1] ?? ''
  for (const count of ['2 files', '0 files'])
    assert.match(
      (await dsh(['rewind', second, '--files', '--yes'])).stdout,
      new RegExp(`^${count} taken back`, 'm'),
    )
  await dsh(['rewind', '--undo', '--yes'])
  assert.ok(!existsSync(join(work, 'a')))
})
