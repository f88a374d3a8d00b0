import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { reply } from '@dsh/harness/testing'
import { bench, jsonLines, preload, sessionIn, unprivileged } from './dsh.ts'

const say = "it's the task"

test('an unknown option, command or permission is refused with the nearest', async t => {
  const { dsh } = bench(t)
  const cases: [string[], string][] = [
    [
      ['run', '--jsno', 'x'],
      'error UNKNOWN_OPTION: dsh run has no option --jsno; did you mean "--json"?\n  dsh run --help\n',
    ],
    [['rnu'], 'error UNKNOWN_COMMAND: dsh has no command "rnu"; did you mean "run"?\n  dsh --help\n'],
    [
      ['--verson'],
      'error UNKNOWN_OPTION: dsh has no option "--verson"; did you mean "--version"?\n  dsh --help\n',
    ],
    [
      ['run', '--permission', 'readonly', 'x'],
      'error UNKNOWN_PERMISSION: there is no permission "readonly"; did you mean "read-only"?\n  dsh run --permission read-only|workspace-write|full-access …\n',
    ],
  ]
  for (const [args, text] of cases) assert.deepEqual(await dsh(args), { code: 2, stdout: '', stderr: text })
})

test('with --json a refusal is the last line as well', async t => {
  const { dsh } = bench(t)
  for (const args of [['--bogus'], ['-C', '/nowhere', 'x'], ['-m', 'x/y', 'x']]) {
    const { code, stdout } = await dsh(['run', '--json', ...args])
    const { events, result } = jsonLines(stdout)
    assert.deepEqual([code, events], [2, []])
    assert.deepEqual(Object.keys(result), ['status', 'sessionId', 'usage', 'cost', 'changedFiles', 'error'])
    assert.equal(result['status'], 'error')
  }
})

test('an unknown model names the nearest provider', async t => {
  const { dsh } = bench(t)
  const { code, stdout, stderr } = await dsh(['run', '-m', 'deepsek/deepseek-flash', say])
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(
    stderr,
    /^error UNKNOWN_MODEL: there is no provider "deepsek" .*; did you mean "deepseek"\?\n {2}dsh models\n$/m,
  )
})

test('a folder that is not there, is a file or may not be read is refused', async t => {
  const { dsh, work } = bench(t)
  writeFileSync(join(work, 'file'), '')
  mkdirSync(join(work, 'closed'))
  chmodSync(join(work, 'closed'), 0o000)
  const cases: [string, RegExp][] = [
    ['nowhere', /^error NO_FOLDER: there is no folder ".*\/work\/nowhere"\n/m],
    ['file', /^error NOT_A_FOLDER: ".*\/work\/file" is no folder\n/m],
    ['file/below', /^error NO_FOLDER: /m],
    ['closed', /^error UNREADABLE_FOLDER: the folder ".*\/closed" may not be read\n {2}ls -ld /m],
  ]
  for (const [folder, pattern] of cases) {
    const { code, stdout, stderr } = await dsh(['run', '-C', folder, say], unprivileged)
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, pattern)
  }
})

test('in a folder that is gone what needs none works, and the rest says so', t => {
  const { home, work } = bench(t)
  const dsh = (words: readonly string[], env: Record<string, string>) => {
    mkdirSync(work, { recursive: true })
    const script = 'rmdir "$PWD" && exec "$0" "$@"'
    const bin = join(import.meta.dirname, '../../bin.js')
    const options = { cwd: work, env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' } as const
    return spawnSync('sh', ['-c', script, process.execPath, bin, ...words], options)
  }
  const listed = dsh(['session', 'ls'], { DSH_HOME: home })
  assert.equal(listed.status, 0, listed.stderr)
  for (const [words, env] of [
    [['run', say], { DSH_HOME: home }],
    [['session', 'ls'], { DSH_HOME: 'relative' }],
  ] as const) {
    const { status, stderr } = dsh(words, env)
    assert.equal(status, 2)
    assert.match(stderr, /^error NO_FOLDER: the current folder is gone\n {2}cd\n/)
  }
})

test('a schema that is missing or none is refused before anything is asked', async t => {
  const { dsh, work, provider } = bench(t)
  const { requests } = await provider()
  writeFileSync(join(work, 'text'), 'not json')
  writeFileSync(join(work, 'list'), '[]')
  writeFileSync(join(work, 'ref'), '{"$ref": "https://example.com/other"}')
  writeFileSync(join(work, 'far'), '{"properties": {"a": {"$ref": "#/nowhere"}}}')
  writeFileSync(join(work, 'pattern'), '{"items": {"properties": {"a": {"pattern": "("}}}}')
  writeFileSync(join(work, 'round'), '{"properties": {"a": {"$ref": "#/properties/a"}}}')
  writeFileSync(join(work, 'type'), '{"properties": {"a": {"type": ["null", "text"]}}}')
  writeFileSync(join(work, 'draft'), '{"$schema": 7, "required": 5}')
  writeFileSync(join(work, 'deep'), `{"default": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  writeFileSync(join(work, 'large'), ' '.repeat(1024 * 1024 + 1))
  execFileSync('mkfifo', [join(work, 'pipe')])
  const cases: [string, RegExp][] = [
    ['gone', /^error UNREADABLE_SCHEMA: there is no schema ".*\/gone"\n {2}dsh run --schema FILE …\n/m],
    ['text', /^error INVALID_SCHEMA: ".*\/text" is no JSON Schema: it is not JSON: /m],
    ['list', /^error INVALID_SCHEMA: ".*\/list" is no JSON Schema: it is not an object\n/m],
    ['ref', /^error INVALID_SCHEMA: ".*\/ref" is no JSON Schema: Unresolved \$ref /m],
    ['far', /^error INVALID_SCHEMA: ".*\/far" is no JSON Schema: Unresolved \$ref "#\/nowhere"/m],
    ['pattern', /^error INVALID_SCHEMA: .*: Invalid regular expression: /m],
    ['round', /^error INVALID_SCHEMA: .*: it is nested too deeply, or refers to itself without end\n/m],
    ['type', /^error INVALID_SCHEMA: .*: there is no type "text"\n/m],
    ['draft', /^error INVALID_SCHEMA: .*: \$required is not iterable\n/m],
    ['deep', /^error INVALID_SCHEMA: .*: it is nested too deeply, or refers to itself without end\n/m],
    ['large', /^error UNREADABLE_SCHEMA: the schema ".*\/large" is larger than 1048576 bytes\n/m],
    ['pipe', /^error INVALID_SCHEMA: .*: it is not JSON: /m],
    ['.', /^error UNREADABLE_SCHEMA: the schema ".*" cannot be read: EISDIR\n/m],
  ]
  for (const [file, pattern] of cases) {
    const { code, stderr } = await dsh(['run', '--schema', file, say])
    assert.equal(code, 2)
    assert.match(stderr, pattern)
  }
  assert.equal(requests.length, 0)
})

test('an answer that cannot be checked against its schema ends like one that does not fit', async t => {
  const { dsh, work, provider } = bench(t)
  const deep = reply.text(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`)
  await provider({ script: [deep, deep, reply.text('{}')] })
  writeFileSync(join(work, 'schema'), '{"properties": {"a": {"$ref": "#"}}}')
  const { code, stdout, stderr } = await dsh(['run', '--schema', 'schema', say])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /^error SCHEMA_MISMATCH: .*: - it cannot be checked: it is nested too deeply, /m)
  const again = await dsh(['run', '-r', sessionIn(stderr), '--schema', 'schema', 'shorter'])
  assert.deepEqual([again.code, again.stdout], [0, '{}\n'])
})

test('a prompt without an end is refused before it fills the memory', async t => {
  const { start, logs } = bench(t)
  const run = start(['run'], { input: null })
  const piece = Buffer.alloc(1024 * 1024, 'word ')
  const endless = new Readable({ read: () => void endless.push(piece) })
  endless.pipe(run.child.stdin)
  const { code, stdout, stderr } = await run.ended
  endless.destroy()
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^error PROMPT_TOO_LARGE: the prompt is larger than 67108864 bytes\n {2}dsh run /)
  assert.deepEqual(logs(), [])
})

const canFill = existsSync('/dev/full')

test('an output that cannot take what is listed is an error, not silence', { skip: !canFill }, t => {
  const { env, work, home } = bench(t)
  const full = openSync('/dev/full', 'w')
  t.after(() => closeSync(full))
  const bin = join(import.meta.dirname, '../../bin.js')
  const { status, stderr } = spawnSync(process.execPath, [bin, 'models'], {
    cwd: work,
    env: { ...env, DSH_HOME: home },
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  assert.equal(stderr, 'error OUTPUT_CLOSED: standard output could not be written: ENOSPC\n')
})

test('a prompt from standard input is given back with the refusal', async t => {
  const { dsh } = bench(t)
  const { stderr } = await dsh(['run', '-C', '/nowhere'], { input: say })
  assert.ok(stderr.endsWith(" run … 'it'\\''s the task'\n"), stderr)
})

test('a missing key names its variable, and the command that says it all again', async t => {
  const { dsh, logs } = bench(t)
  const { code, stdout, stderr } = await dsh(['run', '-m', 'openai/gpt-5', '--yes', say])
  assert.deepEqual([code, stdout], [3, ''])
  assert.match(
    stderr,
    /^error MISSING_CREDENTIAL: openai\/gpt-5 needs a key of OpenAI, and OPENAI_API_KEY is not set\n {2}export OPENAI_API_KEY='…' .*\n {2}.* run --model openai\/gpt-5 --yes 'it'\\''s the task'\n$/m,
  )
  assert.deepEqual(logs(), [])
})

test('a key that no header can hold is refused at once', async t => {
  const { dsh } = bench(t)
  const { code, stderr } = await dsh(['run', say], { env: { DEEPSEEK_API_KEY: 'sk-🐳' } })
  assert.equal(code, 3)
  assert.match(stderr, /^error INVALID_CREDENTIAL: the key in DEEPSEEK_API_KEY cannot be used: /m)
  assert.doesNotMatch(stderr, /🐳/u)
})

test('a wrong key is told with its variable, and the session waits', async t => {
  const { dsh, provider } = bench(t)
  await provider({ key: 'sk-right' })
  const run = await dsh(['run', say], { env: { DEEPSEEK_API_KEY: 'sk-wrong-one' } })
  assert.deepEqual([run.code, run.stdout], [3, ''])
  const id = sessionIn(run.stderr)
  assert.match(
    run.stderr,
    new RegExp(`^error AUTH: .*\\n  export DEEPSEEK_API_KEY='…'\\n  .* run -r ${id} "go on"\\n`, 'm'),
  )
  assert.doesNotMatch(run.stderr, /wrong-one/)
})

test('a home that cannot be made or written is told, and nothing is asked', async t => {
  const { dsh, provider, root } = bench(t)
  const { requests } = await provider({ fallback: reply.text('ok') })
  writeFileSync(join(root, 'file'), '')
  mkdirSync(join(root, 'readonly'))
  chmodSync(join(root, 'readonly'), 0o555)
  for (const home of ['file/home', 'readonly', 'readonly/home']) {
    const options = { ...unprivileged, env: { DSH_HOME: join(root, home) } }
    const { code, stdout, stderr } = await dsh(['run', '--yes', say], options)
    assert.deepEqual([code, stdout], [1, ''], stderr)
    assert.match(stderr, /^error STORE_FAILED: .*(ENOTDIR|EACCES)/m)
    assert.match(stderr, /^ {2}export DSH_HOME=… .*\n {2}.* run --yes 'it'\\''s the task'\n/m)
  }
  assert.equal(requests.length, 0)
})

test('a full disk stops the run with the log whole, and the session goes on when there is room', async t => {
  const { dsh, provider } = bench(t)
  let answer = reply.text('first')
  const { requests } = await provider({ fallback: () => answer })
  const id = sessionIn((await dsh(['run', say])).stderr)
  answer = reply.toolCall('bash', { command: 'true', description: 'Nothing' })
  const full = await dsh(['run', '--yes', '-r', id, say], { env: preload({ DSH_TEST_FULL_AFTER: '4' }) })
  assert.deepEqual([full.code, full.stdout], [1, ''], full.stderr)
  assert.match(full.stderr, /^error STORE_FAILED: .*no space is left.*\n {2}df -h /m)
  assert.ok(requests.length < 5)
  answer = reply.text('room again')
  const again = await dsh(['run', '-r', id, 'go on'])
  assert.deepEqual([again.code, again.stdout], [0, 'room again\n'], again.stderr)
})

test('a full disk in the middle of the work names the session to go on with', async t => {
  const { dsh, provider, work } = bench(t)
  let answer = reply.toolCall('bash', { command: 'echo one >> done', description: 'Do it' })
  await provider({ fallback: () => answer })
  // Unconfined, so that all that is written is the log.
  const words = ['run', '--permission', 'full-access', say]
  const full = await dsh(words, { env: preload({ DSH_TEST_FULL_AFTER: '6' }) })
  assert.equal(full.code, 1)
  const done = readFileSync(join(work, 'done'), 'utf8')
  assert.match(full.stderr, /^error STORE_FAILED: .*no space is left/m)
  const id = sessionIn(full.stderr)
  assert.ok(full.stderr.includes(` run -r ${id} "go on"\n`))
  assert.ok(!full.stderr.includes("'it'\\''s the task'"))
  answer = reply.text('room again')
  assert.equal((await dsh(['run', '-r', id, 'go on'])).stdout, 'room again\n')
  assert.equal(readFileSync(join(work, 'done'), 'utf8'), done)
})

test('whichever write fails, nothing is printed as an answer that is not on the disk', async t => {
  const { dsh, provider } = bench(t)
  await provider({ fallback: reply.text('the answer') })
  let failures = 0
  for (let writes = 0; writes < 30; writes++) {
    const env = preload({ DSH_TEST_FULL_AFTER: String(writes) })
    const { code, stdout, stderr } = await dsh(['run', say], { env })
    if (code === 0) {
      assert.equal(stdout, 'the answer\n')
      const { stdout: shown } = await dsh(['session', 'show', sessionIn(stderr)])
      assert.equal(shown, `› ${say}\nthe answer\n`)
      break
    }
    failures++
    assert.deepEqual([code, stdout], [1, ''], stderr)
    assert.match(stderr, /^error STORE_FAILED: .*no space is left/m)
    assert.equal(stderr.match(/^error /gm)?.length, 1)
    const id = / run -r (\w+) "go on"$/m.exec(stderr)?.[1]
    if (id === undefined) assert.ok(stderr.includes("'it'\\''s the task'"), stderr)
    else assert.ok((await dsh(['session', 'show', id])).stdout.startsWith(`› ${say}\n`))
  }
  assert.ok(failures > 1 && failures < 30, `${failures} failures`)
})

test('a log of a newer version is refused for writing and left as it is', async t => {
  const { dsh, provider, logs } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const id = sessionIn((await dsh(['run', say])).stderr)
  const [log = ''] = logs()
  raiseVersion(log)
  const bytes = readFileSync(log)
  const { code, stderr } = await dsh(['run', '-r', id, say])
  assert.equal(code, 1)
  assert.match(stderr, /^error SESSION_FORMAT_NEWER: .*\n {2}npm install -g dsh@latest\n/m)
  assert.deepEqual(readFileSync(log), bytes)
  assert.match((await dsh(['session', 'ls'])).stdout, new RegExp(`^${id}  unreadable: .*newer`))
})

/** Writes the header anew, which is the first frame, as a later version would. */
function raiseVersion(log: string): void {
  const bytes = readFileSync(log)
  const end = bytes.indexOf(bytes.subarray(0, 4), 4)
  const header = JSON.parse(zstdDecompressSync(bytes.subarray(0, end)).toString()) as { version: number }
  const line = `${JSON.stringify({ ...header, version: header.version + 1 })}\n`
  const frame = zstdCompressSync(line, { params: { [constants.ZSTD_c_checksumFlag]: 1 } })
  writeFileSync(log, Buffer.concat([frame, bytes.subarray(end)]))
}

test(
  'a home that nobody can make ends a run at once, and hides nothing from what only reads',
  {
    skip: !existsSync('/proc/1'),
    timeout: 30_000,
  },
  async t => {
    const { dsh } = bench(t)
    const options = { env: { DSH_HOME: '/proc/1/home' } }
    const [ran, listed, models] = await Promise.all([
      dsh(['run', say], options),
      dsh(['session', 'ls'], options),
      dsh(['models'], options),
    ])
    assert.equal(ran.code, 1)
    assert.match(
      ran.stderr,
      /^error STORE_FAILED: .*: its file or folder is gone: \/proc\/1\/home\/sessions\/.*\n {2}export DSH_HOME=…/m,
    )
    assert.deepEqual([listed.code, models.code], [0, 0])
    assert.match(listed.stderr, /^no sessions in \/proc\/1\/home yet\nthe index cannot be used: ENOENT: /)
  },
)

test('an empty HOME is none, and who has no home folder is told so', async t => {
  const { dsh, provider, home, work } = bench(t)
  await provider({ fallback: reply.text('ok') })
  const env = { HOME: '', DSH_HOME: home }
  await dsh(['run', say], { env })
  const listed = await dsh(['session', 'ls'], { env })
  assert.ok(listed.stdout.endsWith(`  ${work}\n`), listed.stdout)
  if (process.getuid?.() !== 0) return
  const unknown = { uid: 424_242, env: { HOME: undefined } }
  assert.deepEqual(await dsh(['session', 'ls'], unknown), {
    code: 2,
    stdout: '',
    stderr:
      'error NO_HOME: this user has no home folder\n  export DSH_HOME=…   # a folder that you may write\n',
  })
  const own = { ...unknown, env: { HOME: undefined, DSH_HOME: join(work, '../user/own') } }
  await dsh(['run', say], own)
  const theirs = await dsh(['session', 'ls'], own)
  assert.ok(theirs.stdout.endsWith(`  ${work}\n`), theirs.stderr)
})
