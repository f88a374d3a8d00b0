import assert from 'node:assert/strict'
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, sessionIn } from './dsh.ts'

function logOf(home: string, id: string): string {
  return globSync(join(home, 'sessions', '*', id, 'log.jsonl.zst'))[0] ?? ''
}

test('a session is verified; a damaged one is told with its place, and mended with the old log kept', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  await dsh(['run', '-c', 'two'])
  const path = logOf(home, id)

  const sound = await dsh(['session', 'verify', id.slice(0, 12)])
  assert.match(
    sound.stdout,
    new RegExp(`^${id}  chain ok · \\d+ events · \\d+ frames · 2 requests rebuilt\n$`),
  )
  assert.equal(sound.code, 0)

  const bytes = readFileSync(path)
  const at = bytes.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), bytes.length / 3) + 40
  bytes.fill('spoiled', at, at + 7)
  writeFileSync(path, bytes)
  const broken = await dsh(['session', 'verify', id])
  assert.equal(broken.code, 1)
  assert.match(broken.stdout, /^\w+-?\w*  1 problem · /)
  assert.match(
    broken.stdout,
    /\n {2}FRAME_DAMAGED at frame \d+, event \d+, byte \d+: a frame does not match its checksum\n/,
  )
  assert.ok(
    broken.stdout.endsWith(
      `  dsh session repair ${id} puts what is sound in its place and keeps the old log\n`,
    ),
  )

  const shown = await dsh(['session', 'show', id])
  assert.match(shown.stdout, /^› one\n/)
  assert.match(
    shown.stderr,
    new RegExp(`\ndamaged: events .*\ndsh session verify ${id} tells what can be mended\n$`),
  )
  const refused = await dsh(['run', '-r', id, 'three'])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, new RegExp(`^error SESSION_DAMAGED: .*\n {2}.*session repair ${id}\n`, 'm'))

  const repaired = await dsh(['session', 'repair', id])
  assert.equal(repaired.code, 0, repaired.stderr)
  const [kept = ''] = globSync(join(dirname(path), 'log-before-repair-*.jsonl.zst'))
  assert.deepEqual(readFileSync(kept), bytes)
  assert.ok(repaired.stdout.includes(`\nthe old log is ${kept}\n`))
  assert.match(repaired.stdout, /\nevents? \d+.* (is|are) lost: a frame does not match its checksum\n/)
  assert.equal((await dsh(['session', 'verify', id])).code, 0)
  assert.match((await dsh(['session', 'repair', id])).stdout, /^session .* needs no repair: \d+ events\n$/)
  assert.equal((await dsh(['run', '-r', id, 'three'])).code, 0)
})

test('verify --all looks at every session, whatever is wrong with one, and changes nothing', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', 'one'])).stderr)
  const path = logOf(home, id)
  const beside = (name: string): string => {
    const folder = join(dirname(dirname(path)), name)
    mkdirSync(folder)
    return join(folder, 'log.jsonl.zst')
  }
  writeFileSync(beside('aa-noise'), 'no log')
  copyFileSync(path, beside('bb-copy'))
  mkdirSync(join(home, 'sessions', '--other--', id), { recursive: true })
  copyFileSync(path, join(home, 'sessions', '--other--', id, 'log.jsonl.zst'))
  const { mtimeMs } = statSync(path)
  const { code, stdout } = await dsh(['session', 'verify', '--all', '--json'])
  assert.equal(code, 1)
  const reports = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as { id: string; problems: { code: string }[] })
  assert.deepEqual(
    Object.fromEntries(reports.map(report => [report.id, report.problems.map(problem => problem.code)])),
    { 'aa-noise': ['HEADER_DAMAGED'], 'bb-copy': ['HEADER_FOREIGN'], [id]: ['SESSION_AMBIGUOUS'] },
  )
  assert.equal(statSync(path).mtimeMs, mtimeMs)
  assert.ok(!existsSync(join(dirname(path), 'lock')))

  const neither = await dsh(['session', 'verify'])
  assert.deepEqual([neither.code, neither.stdout], [2, ''])
  assert.match(
    neither.stderr,
    /^error MISSING_WORD: dsh session verify needs ID or --all\n {2}dsh session verify --all\n/m,
  )
})
