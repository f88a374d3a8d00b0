import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, bin, preload, sessionIn, unprivileged } from './dsh.ts'

test('where the disk is full a command on a session says so, and how to look', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const full = { env: preload({ DSH_TEST_FULL_AFTER: '0' }) }
  for (const words of [
    ['archive', id],
    ['rename', id, 'x'],
    ['fork', id],
    ['rm', id, '--yes'],
  ]) {
    const { code, stdout, stderr } = await dsh(['session', ...words], full)
    assert.deepEqual([code, stdout], [1, ''], words.join(' '))
    assert.match(
      stderr,
      /^error STORE_FAILED: session "\w+" cannot be \w+: no space is left on the device: /m,
    )
  }
  assert.ok((await dsh(['session', 'archive', id], full)).stderr.endsWith(`\n  df -h ${home}\n`))
  assert.equal((await dsh(['session', 'verify', id])).code, 0)
})

test(
  'an export that cannot be written whole leaves no file',
  { skip: process.platform === 'win32' },
  async t => {
    const { dsh, provider, work, env } = bench(t)
    await provider({ fallback: reply.text('ok') })
    const id = sessionIn((await dsh(['run', 'x'.repeat(100_000)])).stderr)
    const file = join(work, 'big.jsonl')
    // 8 blocks of 512 bytes, or of 1024, are less than there is to write.
    const script = `trap '' XFSZ; ulimit -f 8; exec "$@"`
    const words = [process.execPath, bin, 'session', 'export', id, '--full', '-o', file]
    const { promise, resolve } = Promise.withResolvers<{ code: unknown; stderr: string }>()
    execFile(
      'sh',
      ['-c', script, 'sh', ...words],
      { env, cwd: work, timeout: 30_000 },
      (error, _out, stderr) => resolve({ code: error?.code, stderr }),
    )
    const { code, stderr } = await promise
    assert.match(stderr, /^error OUTPUT_FILE: "[^"]*big\.jsonl" cannot be written \(EFBIG\)\n/m)
    assert.deepEqual([code, existsSync(file)], [2, false])
  },
)

const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', tmpdir()]).status === 0

/** Two sessions on a disk of their own, which is then filled: an append must fail, and removals must not. */
const fillAndRemove = String.raw`
  mount -t tmpfs -o size=2m none "$1" && mkdir -m 700 "$1/h" && export DSH_HOME="$1/h"
  [ "$4" = sqlite ] && printf -- '- {id: store-jsonl, disabled: true}\n- name: store-sqlite\n' > "$1/h/dsh.yml"
  ids() { "$2" "$3" session ls --json | sed 's/.*"id":"\([0-9a-z]*\)".*/\1/'; }
  for task in one two; do "$2" "$3" run -m demo/demo $task </dev/null >/dev/null 2>&1; done
  all=$(ids "$@")
  cat /dev/zero > "$1/filler" 2>/dev/null
  for id in $all; do "$2" "$3" session archive $id >/dev/null 2>&1 && echo not full; done
  for id in $all; do "$2" "$3" session rm $id --yes 2>&1 | sed "s/$id/ID/"; done
  "$2" "$3" session ls 2>&1 | sed 's/ in .*//'
`

for (const store of ['jsonl', 'sqlite'])
  test(`on a full disk sessions can be removed (${store})`, { skip: !canMount }, t => {
    const { root, env } = bench(t)
    const disk = join(root, 'disk')
    mkdirSync(disk)
    const args = ['-m', 'sh', '-c', fillAndRemove, 'sh', disk, process.execPath, bin, store]
    const printed = execFileSync('unshare', args, { cwd: root, env, encoding: 'utf8', timeout: 60_000 })
    assert.match(printed, /^session ID is removed\nsession ID is removed\nno sessions\n/)
  })

test('a folder of sessions that may not be read is named as such, with a way out', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'], unprivileged)).stderr)
  const folder = join(home, 'sessions')
  chmodSync(folder, 0)
  const shown = await dsh(['session', 'show', id], unprivileged)
  const resumed = await dsh(['run', '-c', 'two'], unprivileged)
  chmodSync(folder, 0o700)
  const told = `error STORE_FAILED: the sessions cannot be listed: permission is denied: ${folder}\n  `
  assert.deepEqual([shown.code, resumed.code], [1, 1])
  assert.ok(shown.stderr.startsWith(`${told}export DSH_HOME=…`), shown.stderr)
  assert.ok(resumed.stderr.startsWith(`${told}export DSH_HOME=…`), resumed.stderr)
})

test('whatever cannot be done with a damaged session, the command that mends it is named', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  writeFileSync(logs()[0] ?? '', 'no log')
  const told = new RegExp(`^error SESSION_DAMAGED: .*\n {2}.*session repair ${id}\n`, 'm')
  const words = [['archive'], ['export'], ['fork'], ['show'], ['rename', 'title']]
  for (const [action = '', ...rest] of words) {
    const { code, stderr } = await dsh(['session', action, id, ...rest])
    assert.deepEqual([code, told.test(stderr)], [1, true], stderr)
  }
  assert.match((await dsh(['run', '-r', id, 'two'])).stderr, told)
  assert.match((await dsh(['rewind', id])).stderr, told)
})

test('a session whose inbox does not follow from its log goes on with a word, and verify tells', async t => {
  const { dsh, provider, root, work } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const { stdout } = await dsh(['session', 'export', id, '--format', 'jsonl', '--full'])
  writeFileSync(
    join(work, 'x.jsonl'),
    stdout.replace('"type":"agent/inbox/spliced"', '"ignorable":true,"type":"another/type"'),
  )
  const elsewhere = { env: { DSH_HOME: join(root, 'other') } }
  await dsh(['session', 'import', 'x.jsonl'], elsewhere)
  const verified = await dsh(['session', 'verify', id], elsewhere)
  assert.deepEqual([verified.code, /INBOX_BROKEN/.test(verified.stdout)], [1, true], verified.stderr)
  const { code, stderr } = await dsh(['run', '-r', id, 'two'], elsewhere)
  assert.equal(code, 0, stderr)
  assert.match(stderr, /^note: what had waited to be read is not known any more: event \d+ changes /m)
})

test('a lock that is no file or may not be read lets be read and listed, and what to do is said', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'], unprivileged)).stderr)
  const lock = join(dirname(logs()[0] ?? ''), 'lock')
  const kinds = [
    () => mkdirSync(lock),
    () => execFileSync('mkfifo', [lock], { timeout: 5000, killSignal: 'SIGKILL' }),
    () => writeFileSync(lock, '', { mode: 0 }),
  ]
  for (const make of kinds) {
    make()
    const [shown, resumed, removed, listed] = await Promise.all([
      dsh(['session', 'show', id], unprivileged),
      dsh(['run', '-r', id, 'two'], unprivileged),
      dsh(['session', 'rm', id, '--yes'], unprivileged),
      dsh(['session', 'ls'], unprivileged),
    ])
    assert.match(shown.stdout, /^› one\n/, shown.stderr)
    assert.match(listed.stdout, /\[open\]\n$/)
    const told = `error SESSION_HELD: the session is open elsewhere, by whom cannot be read: ${lock}\n  rm -r ${lock} `
    for (const { stderr } of [resumed, removed]) assert.ok(stderr.includes(told), stderr)
    rmSync(lock, { recursive: true })
  }
  assert.equal((await dsh(['run', '-r', id, 'two'], unprivileged)).code, 0)
})

test('a lock that says anything whatever never is an error of dsh itself', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const lock = join(dirname(logs()[0] ?? ''), 'lock')
  const owner = { start: '1', boot: 'b', host: 'h', space: 's', nonce: 'n' }
  for (const text of [
    'other',
    '[]',
    JSON.stringify({ ...owner, pid: 1, since: Number.MAX_SAFE_INTEGER }),
    JSON.stringify({ ...owner, pid: 1, since: 8.64e15 }),
  ]) {
    writeFileSync(lock, text)
    const shown = await dsh(['session', 'show', id])
    assert.match(shown.stdout, /^› one\n/)
    assert.match(shown.stderr, /^the session is read-only: it is open in another program/)
    for (const words of [
      ['run', '-r', id, 'two'],
      ['session', 'rm', id, '--yes'],
    ])
      assert.match((await dsh(words)).stderr, /^error SESSION_HELD: /)
    assert.match((await dsh(['session', 'ls'])).stdout, /\[open( in process 1)?\]\n$/)
  }
})
