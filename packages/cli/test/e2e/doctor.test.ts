import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, bin, preload, sessionIn, unprivileged } from './dsh.ts'
import type { Bench, StartOptions } from './dsh.ts'

interface Finding {
  readonly check: string
  readonly state: string
  readonly code: string
  readonly detail: string
  readonly fix?: string
}

interface Seen {
  readonly code: number | null
  readonly findings: readonly Finding[]
  readonly stdout: string
}

const everyCheck = [
  'node',
  'home',
  'disk',
  'folder',
  'sessions',
  'index',
  'values',
  'restore',
  'keys',
  'model',
  'network',
  'git',
  'sandbox',
  'rules',
  'hooks',
  'terminal',
  'plugins',
]

async function examine({ dsh }: Bench, options: StartOptions & { readonly deep?: true } = {}): Promise<Seen> {
  const words = ['doctor', '--json', ...(options.deep === true ? ['--deep'] : [])]
  const { code, stdout, stderr } = await dsh(words, options)
  assert.equal(stderr, '')
  const findings = parse(stdout)
  assert.deepEqual([...new Set(findings.map(({ check }) => check))], everyCheck)
  assert.equal(code, findings.some(({ state }) => state === 'problem') ? 1 : 0)
  return { code, findings, stdout }
}

function parse(stdout: string): readonly Finding[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Finding)
}

function one({ findings }: Seen, code: string): Finding {
  const found = findings.filter(finding => finding.code === code)
  assert.equal(found.length, 1, `${code} in ${JSON.stringify(findings)}`)
  return found[0] as Finding
}

function problemsIn({ findings }: Seen): readonly string[] {
  return findings.filter(({ state }) => state === 'problem').map(({ code }) => code)
}

/** A home that is the person's own, with a session in it. */
async function used(
  t: TestContext,
): Promise<{ readonly place: Bench; readonly id: string; readonly log: string }> {
  const place = bench(t)
  await place.provider({ fallback: reply.text('ok') })
  const { stderr } = await place.dsh(['run', 'hi'])
  const id = sessionIn(stderr)
  await place.dsh(['session', 'ls'])
  return { place, id, log: place.logs()[0] ?? '' }
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, text)
}

/** Each file and folder below `root`, with all that a write would change. */
function fingerprint(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map(name => {
      const path = join(root, name)
      const { mode, mtimeMs, ctimeMs, size, ino } = lstatSync(path)
      const hash = lstatSync(path).isFile()
        ? createHash('sha256').update(readFileSync(path)).digest('hex')
        : ''
      return [name, mode, mtimeMs, ctimeMs, size, ino, hash].join(' ')
    })
}

test('of a sound home nothing is reported, and nothing in it or beside it is changed', async t => {
  const { place } = await used(t)
  const before = fingerprint(place.root)
  const seen = await examine(place)
  assert.deepEqual(problemsIn(seen), [])
  assert.equal(one(seen, 'KEY_PRESENT').detail, 'DeepSeek · DEEPSEEK_API_KEY has the form of a key')
  assert.match(
    seen.findings.find(({ check }) => check === 'sessions')?.detail ?? '',
    /^1 session · all of them checked$/,
  )
  assert.deepEqual(problemsIn(await examine(place, { deep: true })), [])
  assert.deepEqual(fingerprint(place.root), before)
})

test('what is broken in every way is left exactly so', async t => {
  const { place, log } = await used(t)
  const { home } = place
  appendFileSync(log, Buffer.alloc(100))
  write(join(dirname(log), 'lock'), 'null\n')
  write(join(home, 'cache/index.sqlite'), 'no database')
  write(join(home, 'cache/projections/0.json'), '{')
  write(join(home, 'default-model.json'), '[')
  write(join(home, 'sessions/--x--/broken/log.jsonl.zst'), 'no log')
  write(join(home, 'dsh.yml'), '- name: ./absent.ts\n')
  write(join(home, 'restore/0/workspace.json'), '{')
  const before = fingerprint(place.root)
  const seen = await examine(place)
  const codes = seen.findings.map(({ code }) => code)
  for (const code of [
    'LOCK_UNREADABLE',
    'INDEX_NO_DATABASE',
    'PROJECTION_BROKEN',
    'DEFAULT_MODEL_UNREADABLE',
    'SESSION_UNREADABLE',
    'PLUGIN_OFF',
    'RESTORE_MARKER_BROKEN',
  ])
    assert.ok(codes.includes(code), code)
  await examine(place, { deep: true })
  assert.deepEqual(fingerprint(place.root), before)
})

test('a home that is not there is told of, and is not made', async t => {
  const place = bench(t)
  const seen = await examine(place)
  assert.equal(one(seen, 'HOME_NEW').state, 'note')
  assert.match(one(seen, 'NO_KEY').fix ?? '', /^export DEEPSEEK_API_KEY='…'/)
  assert.equal(seen.code, 0)
  assert.equal(existsSync(place.home), false)
})

test('each line says the state, the check and what it is, and below a problem stands what mends it', async t => {
  const { dsh, home } = bench(t)
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(join(home, 'dsh.yml'), '- {id: bsh, disabled: true}\n')
  const { code, stdout } = await dsh(['doctor'])
  assert.equal(code, 1)
  assert.ok(stdout.includes(`\nok       home      ${home}\n`), stdout)
  assert.match(
    stdout,
    /\nproblem {2}plugins {3}bsh is unloaded: no layer brings in a plugin "bsh"; did you mean "bash"\?\n {9}.* plugin why bsh\n1 problem, \d notes?\n$/,
  )
  const refused = await dsh(['doctor', 'me'])
  assert.deepEqual([refused.code, refused.stdout], [2, ''])
  assert.match(refused.stderr, /^error UNEXPECTED_WORD: dsh doctor takes no "me"\n/)
})

test('a home that may not be written is a problem', { skip: process.platform === 'win32' }, async t => {
  const place = bench(t)
  const { uid } = unprivileged
  for (const [path, mode] of [
    [place.home, 0o500],
    [join(place.home, 'sessions'), 0o500],
  ] as const) {
    mkdirSync(path, { recursive: true })
    if (uid !== undefined) chownSync(path, uid, uid)
    chmodSync(path, mode)
    const { detail, fix } = one(await examine(place, unprivileged), 'HOME_NOT_WRITABLE')
    chmodSync(path, 0o700)
    assert.equal(detail, `${path} may not be read and written`)
    assert.match(fix ?? '', /^chmod /)
  }
})

test('a home that is no folder is a problem, and the report goes on', async t => {
  const place = bench(t)
  write(place.home, 'text')
  assert.match(one(await examine(place), 'HOME_NO_FOLDER').detail, /is no folder$/)
})

test('a home that others may enter, and one of another user, are told of', async t => {
  const place = bench(t)
  mkdirSync(place.home)
  chmodSync(place.home, 0o755)
  assert.equal(one(await examine(place), 'HOME_OPEN').fix, `chmod 700 ${place.home}`)
  if (unprivileged.uid === undefined) return
  chownSync(place.home, unprivileged.uid, unprivileged.uid)
  assert.match(one(await examine(place), 'HOME_FOREIGN').fix ?? '', /^sudo chown -R /)
})

test('damage in the middle of a log is a problem, and its end cut off is none', async t => {
  const { place, id, log } = await used(t)
  const whole = readFileSync(log)
  truncateSync(log, whole.length - 5)
  const torn = await examine(place)
  assert.match(
    one(torn, 'SESSION_TORN').detail,
    new RegExp(`^${id} ends with [\\d,]+ bytes of an unfinished write`),
  )
  assert.deepEqual(problemsIn(torn), [])

  writeFileSync(log, whole)
  await place.dsh(['run', '-c', 'more'])
  const spoiled = readFileSync(log)
  const at = spoiled.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), 4) + 40
  spoiled.fill('spoiled', at, at + 7)
  writeFileSync(log, spoiled)
  const damaged = one(await examine(place), 'FRAME_DAMAGED')
  assert.match(damaged.fix ?? '', new RegExp(` session verify ${id}$`))
})

test('a session that cannot be read is a problem of its own beside the sound ones', async t => {
  const { place } = await used(t)
  write(join(place.home, 'sessions/--x--/broken/log.jsonl.zst'), 'no log')
  const seen = await examine(place)
  assert.deepEqual(problemsIn(seen), ['SESSION_UNREADABLE'])
  assert.match(one(seen, 'SESSION_UNREADABLE').detail, /^broken: /)
})

test('the lock of a program that died is in nobody’s way, and one that names nobody is', async t => {
  const place = bench(t)
  const mock = await place.provider({ fallback: reply.text('slow').gate(new Promise(() => {})) })
  const { child, ended } = place.start(['run', 'hi'])
  await mock.received(1)
  const open = await examine(place)
  assert.match(
    open.findings.find(({ check }) => check === 'sessions')?.detail ?? '',
    /^1 session · 1 open · /,
  )
  child.kill('SIGKILL')
  await ended
  const left = await examine(place)
  assert.equal(one(left, 'LOCK_OF_DEAD').state, 'note')
  assert.deepEqual(problemsIn(left), [])
  const lock = join(dirname(place.logs()[0] ?? ''), 'lock')
  writeFileSync(lock, 'null\n')
  const { state, fix } = one(await examine(place), 'LOCK_UNREADABLE')
  assert.deepEqual([state, fix], ['problem', `rm -r ${lock}   # once no dsh works on it`])
})

test('the index is told apart: another version, cut short, no database, another program’s', async t => {
  const { place } = await used(t)
  const path = join(place.home, 'cache/index.sqlite')
  const change = (sql: string): void => {
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.exec('PRAGMA journal_mode = DELETE')
    db.close()
  }
  change('PRAGMA user_version = 99')
  assert.equal(one(await examine(place), 'INDEX_OTHER_VERSION').state, 'note')
  truncateSync(path, 8192)
  assert.equal(one(await examine(place), 'INDEX_CUT_SHORT').state, 'note')
  writeFileSync(path, 'x'.repeat(200))
  assert.equal(one(await examine(place), 'INDEX_NO_DATABASE').state, 'note')
  rmSync(path)
  change('CREATE TABLE mine (a)')
  const { state, fix } = one(await examine(place), 'INDEX_FOREIGN')
  assert.deepEqual([state, fix], ['problem', `mv ${path} ${path}.foreign`])
})

test('a repository of kept files that misses a part is told of', async t => {
  const place = bench(t)
  const folder = join(place.home, 'restore/0123')
  write(join(folder, 'workspace.json'), '{"workspace":"/srv/app"}\n')
  assert.match(
    one(await examine(place), 'RESTORE_BROKEN').detail,
    /^the files kept of \/srv\/app miss HEAD, /,
  )
  writeFileSync(join(folder, 'workspace.json'), '{')
  assert.equal(one(await examine(place), 'RESTORE_MARKER_BROKEN').state, 'note')
})

test('a plugin that cannot run, and a file that is no YAML, are problems', async t => {
  const place = bench(t)
  write(join(place.home, 'dsh.yml'), '- name: ./absent.ts\n')
  const off = one(await examine(place), 'PLUGIN_OFF')
  assert.match(off.detail, /^absent is unloaded: plugin ".\/absent.ts" cannot be loaded/)
  assert.match(off.fix ?? '', / plugin why absent$/)
  write(join(place.home, 'dsh.yml'), '- id: [\n')
  assert.match(
    one(await examine(place), 'COMPOSITION_UNREADABLE').detail,
    /dsh\.yml: .* at line \d+, column \d+/,
  )
  write(join(place.home, 'dsh.yml'), '- {id: store-jsonl, disabled: true}\n')
  assert.match(one(await examine(place), 'NO_STORE').detail, /^no session would be kept: /)
})

test('a plugin that throws where nobody waits, or never ends its start, ends no report', async t => {
  const place = bench(t)
  write(join(place.home, 'dsh.yml'), '- name: ./late.ts\n')
  const late = (body: string): void =>
    writeFileSync(
      join(place.home, 'late.ts'),
      `export const plugin = { name: 'late', apply: () => { ${body} } }\n`,
    )
  late(`queueMicrotask(() => { throw new Error('late') })`)
  assert.match(one(await examine(place), 'PLUGIN_FAILED').detail, /late$/)
  late('return new Promise(() => { setInterval(() => {}, 1000) })')
  const hurried = preload({ DSH_TEST_HURRY: '5' })
  const stuck = (await examine(place, { env: hurried })).findings.filter(({ check }) => check === 'plugins')
  assert.deepEqual(
    stuck.map(({ state }) => state),
    ['problem'],
  )
})

test('a composition in the current folder is passed over, and that is told', async t => {
  const place = bench(t)
  write(join(place.work, 'dsh.yml'), '- {id: bash, disabled: true}\n')
  assert.equal(one(await examine(place), 'COMPOSITION_PASSED_OVER').state, 'note')
})

test('a check that fails itself is a problem, and the others are made', async t => {
  const place = bench(t)
  write(join(place.home, 'cache/projections'), 'no folder')
  const failed = (await examine(place)).findings.filter(({ check }) => check === 'values')
  assert.deepEqual(
    failed.map(({ state, code }) => [state, code]),
    [['problem', 'ENOTDIR']],
  )
})

test('a key that cannot be one is a problem, and no secret is printed', async t => {
  const place = bench(t)
  const secret = 'a1b2c3d4e5f6a7b8c9d0e1f2'
  const env = {
    DEEPSEEK_API_KEY: `"sk-${secret}"`,
    OPENAI_API_KEY: `sk-or-${secret}`,
    ZHIPUAI_API_KEY: `${secret} ${secret}`,
    HTTPS_PROXY: `socks5://me:${secret}@proxy:1080`,
    MY_TOKEN: secret,
  }
  write(join(place.home, 'dsh.yml'), `- {name: ./told.ts}\n`)
  writeFileSync(join(place.home, 'told.ts'), `throw new Error('wrong: ${secret}')\n`)
  const seen = await examine(place, { env })
  const codes = problemsIn(seen)
  for (const code of ['KEY_QUOTED', 'KEY_OF_ANOTHER', 'KEY_UNUSABLE', 'PROXY_UNUSABLE', 'PLUGIN_OFF'])
    assert.ok(codes.includes(code), code)
  assert.match(one(seen, 'PLUGIN_OFF').detail, /wrong: \[redacted secret\]/)
  assert.ok(!seen.stdout.includes(secret))
  assert.ok(!(await place.dsh(['doctor'], { env })).stdout.includes(secret))
})

test('a proxy is told by its host, and an address that is none is a problem', async t => {
  const place = bench(t)
  const env = { DEEPSEEK_API_KEY: 'sk-0123456789abcdef', HTTPS_PROXY: 'http://me:hidden@proxy.example:3128' }
  const { detail } = one(await examine(place, { env }), 'PROXY')
  assert.equal(detail, 'DeepSeek · api.deepseek.com through the proxy proxy.example:3128')
  const wrong = await examine(place, { env: { ...env, DEEPSEEK_BASE_URL: 'example' } })
  assert.equal(one(wrong, 'BASE_URL_INVALID').fix, 'unset DEEPSEEK_BASE_URL')
})

test('a default model that has no key now, and a file that names none, are told of', async t => {
  const place = bench(t)
  const path = join(place.home, 'default-model.json')
  write(path, '{"provider":"openai","model":"gpt-x"}')
  assert.match(one(await examine(place), 'DEFAULT_MODEL_PASSED_OVER').detail, /^openai\/gpt-x was asked last/)
  write(path, '{}')
  assert.equal(one(await examine(place), 'DEFAULT_MODEL_UNREADABLE').state, 'note')
})

test('without git files cannot be taken back, which is a problem; an old one is told of', async t => {
  const place = bench(t)
  const folder = join(place.root, 'bin')
  mkdirSync(folder)
  assert.match(
    one(await examine(place, { env: { PATH: folder } }), 'GIT_MISSING').detail,
    /^git is not in PATH/,
  )
  writeFileSync(join(folder, 'git'), '#!/bin/sh\necho git version 2.20.1\n', { mode: 0o755 })
  assert.match(one(await examine(place, { env: { PATH: folder } }), 'GIT_OLD').detail, /^git 2\.20\.1; /)
})

test('a locale without UTF-8 is told of', { skip: process.platform === 'win32' }, async t => {
  const place = bench(t)
  assert.equal(one(await examine(place, { env: { LANG: 'C' } }), 'LOCALE_NOT_UTF8').state, 'note')
})

test('a folder that is gone is a problem', { skip: process.platform === 'win32' }, t => {
  const { work, env } = bench(t)
  const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@" doctor --json'
  const { stdout } = spawnSync('sh', ['-c', script, 'sh', process.execPath, bin], {
    cwd: work,
    env,
    encoding: 'utf8',
    timeout: 30_000,
  })
  assert.equal(parse(stdout).find(({ check }) => check === 'folder')?.code, 'NO_FOLDER')
})

const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', tmpdir()]).status === 0

test('a disk that is nearly full is a problem', { skip: !canMount }, t => {
  const { root, env } = bench(t)
  const disk = join(root, 'disk')
  mkdirSync(disk)
  const script = 'mount -t tmpfs -o size=2m none "$1" && DSH_HOME="$1" "$2" "$3" doctor --json || true'
  const args = ['-m', 'sh', '-c', script, 'sh', disk, process.execPath, bin]
  const findings = parse(execFileSync('unshare', args, { cwd: root, env, encoding: 'utf8', timeout: 60_000 }))
  const found = findings.find(({ code }) => code === 'DISK_LOW')
  assert.deepEqual([found?.state, found?.fix], ['problem', `df -h ${disk}`])
})
