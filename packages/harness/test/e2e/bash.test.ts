import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { bash } from '../../src/plugins/bash/index.ts'
import type { BashConfig } from '../../src/plugins/bash/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness } from '../../src/testing/index.ts'

const noProc = !fs.existsSync('/proc/self/stat')

/** Far longer than anything here takes on the slowest machine, and shorter than what a call must not wait for. */
const hang = 20_000
/** A sleep that `pgrep` can tell from those of other tests. */
const nap = (seconds: number): string => `sleep ${seconds}.${process.pid}`

async function setup(
  config: Partial<BashConfig> = {},
  env: Record<string, string | undefined> = process.env,
) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-bash-')))
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess, { env })
  const plugin = ctx.plugin(bash, { cwd: '/', ...config })
  await plugin
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir } })
  let calls = 0
  const run = async (
    command: string,
    args: Record<string, JsonValue> = {},
    signal: AbortSignal = new AbortController().signal,
  ) => {
    const input = { callId: CallId(`c${++calls}`), name: 'bash', signal, agent }
    const started = performance.now()
    const result = await ctx.tools.execute({ ...input, arguments: { command, description: 'test', ...args } })
    const [block] = result.content
    const text = block?.type === 'text' ? block.text : assert.fail('no text')
    return { text, result, meta: result.meta as Record<string, JsonValue>, took: performance.now() - started }
  }
  const clean = async (): Promise<void> => {
    await ctx.dispose()
    fs.rmSync(dir, { recursive: true, force: true })
  }
  return { ctx, plugin, dir, agent, run, [Symbol.asyncDispose]: clean }
}

test('output, exit code and signal of a command are told, and none of them is an error', async () => {
  await using world = await setup()
  const cases = {
    'echo out; echo err >&2; exit 3': 'out\n[stderr]\nerr\n[exit code: 3]',
    true: '(no output)',
    false: '(no output)\n[exit code: 1]',
    'exit 3': '(no output)\n[exit code: 3]',
    'kill -9 $$': '(no output)\n[killed by signal: SIGKILL]',
    'printf "[exit code: 1]"': '[exit code: 1]',
    'nosuchcommand 2>/dev/null': '(no output)\n[exit code: 127]',
  }
  for (const [command, expected] of Object.entries(cases)) {
    const { text, result, took } = await world.run(command)
    assert.equal(text, expected)
    assert.equal(result.isError, false)
    assert.ok(took < hang, `${command}: ${took} ms`)
  }
  const { meta } = await world.run('exit 3')
  const { durationMs, ...facts } = meta
  assert.ok(Number.isInteger(durationMs))
  assert.deepEqual(facts, {
    exitCode: 3,
    signal: null,
    timedOut: false,
    timeoutMs: 60_000,
    shell: 'bash',
    survivors: [],
    outputs: { stdout: { bytes: 0, omittedBytes: 0 }, stderr: { bytes: 0, omittedBytes: 0 } },
  })
})

test('a command runs in the folder of its session, in one below it, or in any other, and each in a fresh shell', async () => {
  await using world = await setup()
  fs.mkdirSync(join(world.dir, 'sub'))
  assert.equal((await world.run('cd /; X=1; pwd')).text, '/')
  assert.equal((await world.run('pwd; echo "$X"')).text, `${world.dir}\n`)
  assert.equal((await world.run('pwd', { workdir: 'sub' })).text, join(world.dir, 'sub'))
  assert.equal((await world.run('pwd', { workdir: '/' })).text, '/')
  const missing = await world.run('pwd', { workdir: 'none' })
  assert.equal(missing.text, `Error: no folder "${join(world.dir, 'none')}" to work in`)
  assert.equal((missing.result.isError && missing.result.error.info?.code) || '', 'WORKDIR_NOT_FOUND')
})

test('git goes on without an editor, and says what it needs where it cannot', async () => {
  await using world = await setup({}, { PATH: process.env['PATH'], HOME: '/nonexistent', EDITOR: 'vi' })
  const steps = [
    'git init -qb main && git config user.name me && git config user.email me@invalid',
    'echo 1 > a && git add a && git commit -qm one && git switch -qc side && echo 2 > a && git commit -qam two',
    'git switch -q main && echo 3 > a && git commit -qam three && git switch -q side',
    'git rebase -q main >/dev/null 2>&1; echo 4 > a && git add a && git rebase --continue >/dev/null 2>&1',
  ]
  for (const step of steps) assert.equal((await world.run(step)).text, '(no output)')
  assert.equal((await world.run('git log --format=%s')).text, 'two\nthree\none')
  const bare = await world.run('git commit --allow-empty')
  assert.match(bare.text, /Aborting commit due to empty commit message\.\n\[exit code: 1\]$/)
  const list = await world.run('git rebase -i HEAD~1')
  assert.match(list.text, /\nset GIT_SEQUENCE_EDITOR to a command that edits the list\n/)
  assert.equal(
    (await world.run("GIT_SEQUENCE_EDITOR='sed -i s/^pick/drop/' git rebase -qi HEAD~1")).text,
    '(no output)',
  )
  assert.equal((await world.run('git log --format=%s')).text, 'three\none')
})

test('arguments that cannot be meant start nothing', async () => {
  await using world = await setup()
  for (const [args, text] of [
    [{ command: ' ' }, 'command: is blank'],
    [{ command: 'a\0b' }, 'command: has a NUL character'],
    [{ timeoutMs: 0 }, 'timeoutMs: must be more than 0, not 0'],
    [{ timeoutMs: -1 }, 'timeoutMs: must be more than 0, not -1'],
  ] as const)
    assert.equal((await world.run('touch made', args)).text, `Error: invalid arguments: ${text}`)
  assert.deepEqual(fs.readdirSync(world.dir), [])
})

test('what a model may not decide is not taken from its arguments', async () => {
  await using world = await setup()
  const { text } = await world.run('echo "$EVIL"; cat', {
    env: { EVIL: '1' },
    stdin: 'evil',
    graceMs: 1,
    signal: 'x',
  })
  assert.equal(text, '')
})

test(
  'a time-out ends everything the command started, keeps the output, and is no error',
  { skip: noProc },
  async () => {
    await using world = await setup({ graceMs: 200 })
    const cases = {
      [`echo begun; ${nap(60)}`]: 'begun\n[timed out after 1000 ms]\n[killed by signal: SIGTERM]',
      [`trap "" TERM; echo begun; ${nap(60)}; echo after; ${nap(60)}`]:
        'begun\n[timed out after 1000 ms]\n[killed by signal: SIGKILL]',
      [`trap "exit 0" TERM; echo begun; ${nap(60)} & wait`]: 'begun\n[timed out after 1000 ms]',
      [`(setsid sh -c "trap '' TERM; echo begun; ${nap(61)}" &); ${nap(60)}`]:
        'begun\n[timed out after 1000 ms]\n[killed by signal: SIGTERM]',
    }
    for (const [command, expected] of Object.entries(cases)) {
      const { text, result, took } = await world.run(command, { timeoutMs: 1000 })
      assert.equal(text, expected)
      assert.equal(result.isError, false)
      assert.ok(took < hang, `${command}: ${took} ms`)
    }
    const { text: late } = await world.run('sleep 0.1; setsid sleep 65 & exit', { timeoutMs: 1000 })
    assert.match(late, /^\(no output\)\n\[still running/, 'what ended in time is not late for what it left')
    assert.equal(
      (await world.run(`pgrep -f "sleep 6[01][.]${process.pid}"`)).text,
      '(no output)\n[exit code: 1]',
    )
  },
)

test('a time-out is at most the configured one', async () => {
  await using world = await setup({ maxTimeoutMs: 100, graceMs: 100 })
  const { text } = await world.run('sleep 60', { timeoutMs: 1e9 })
  assert.equal(text, '(no output)\n[timed out after 100 ms]\n[killed by signal: SIGTERM]')
})

test('a cancelled command is ended with everything it started', { skip: noProc }, async () => {
  await using world = await setup()
  const controller = new AbortController()
  const told = Promise.withResolvers<void>()
  world.ctx.on('bash/output', () => told.resolve())
  const running = world.run(`setsid ${nap(62)} & echo begun; ${nap(62)}`, {}, controller.signal)
  await told.promise
  controller.abort()
  const { result, took } = await running
  assert.equal(result.isError && result.error.info?.code, 'ABORTED')
  assert.ok(took < hang, `${took} ms`)
  assert.equal(
    (await world.run(`pgrep -f "sleep 6[2][.]${process.pid}"`)).text,
    '(no output)\n[exit code: 1]',
  )
})

test('a shell that ended is answered at once, whatever it left running', { skip: noProc }, async () => {
  await using world = await setup()
  // The name is that of the shell until the command itself has begun.
  const cases = {
    'sleep 63 & echo done': /^done\n\[still running: \d+ \S+\]$/,
    '(while :; do echo x; sleep 1; done) & echo done':
      /^(x\n)?done\n(x\n)?\[still running: \d+ bash(, \d+ \S+)?\]$/,
    'setsid sleep 63 & echo done': /^done\n\[still running: \d+ \S+\]$/,
    'nohup sleep 63 >/dev/null 2>&1 & echo $!': /^(\d+)\n\[still running: \1 \S+\]$/,
    'sleep 63 | cat & echo hi': /^hi\n\[still running: \d+ \S+, \d+ \S+\]$/,
    'sleep 63 >/dev/null 2>&1 & disown; echo up': /^up\n\[still running: \d+ \S+\]$/,
  }
  for (const [command, expected] of Object.entries(cases)) {
    const { text, took } = await world.run(command)
    assert.match(text, expected)
    assert.ok(took < hang, `${command}: ${took} ms`)
  }
  const server =
    'setsid node -e "require(\'http\').createServer().listen(0)" >/dev/null 2>&1 </dev/null & sleep 0.3; echo up'
  const { text, took } = await world.run(server)
  assert.match(text, /^up\n\[still running: \d+ \S+\]$/)
  assert.ok(took < hang, `${took} ms`)
  const { meta } = await world.run('true')
  assert.deepEqual(meta['survivors'], [], 'those of other calls are not named')
})

test('what a command left running is ended with the plugin', { skip: noProc }, async () => {
  const world = await setup()
  const { text } = await world.run('setsid sleep 64 >/dev/null 2>&1 & echo $!')
  const pid = Number(text.split('\n')[0])
  const isRunning = (): boolean =>
    fs.existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))
  assert.ok(isRunning())
  await world.ctx.dispose()
  assert.equal(isRunning(), false)
  fs.rmSync(world.dir, { recursive: true })
})

test('output is told as it comes, in whole characters, to those who listen', async () => {
  await using world = await setup()
  const told: string[] = []
  world.ctx.on('bash/output', ({ agent, callId, stream, text }) => {
    assert.equal(agent, world.agent)
    told.push(`${callId} ${stream} ${text}`)
  })
  await world.run("printf '\\xf0\\x9f'; sleep 0.1; printf '\\x90\\xb3\\x1b[1m'; sleep 0.1; echo err >&2")
  assert.deepEqual(told, ['c1 stdout 🐳', 'c1 stderr err\n'])
  assert.deepEqual(
    world.agent.session.events.filter(event => (event.type as string).startsWith('bash')),
    [],
    'nothing of it is in the log',
  )
})

test('bytes, control characters and progress bars are harmless in the result', async () => {
  await using world = await setup()
  const cases = {
    "printf '\\033]0;title\\a\\033[2J\\033[?1049hx'": 'x',
    "printf 'a\\0b'": 'a␀b',
    "for i in 1 2 3; do printf '\\r%d%%' $i; done; echo": '3%',
    "printf '\\xed\\xa0\\x80'": '\ufffd\ufffd\ufffd',
    "printf 'a\\u2028b'": 'a\u2028b',
  }
  for (const [command, expected] of Object.entries(cases))
    assert.equal((await world.run(command)).text, expected)
  const { text } = await world.run('head -c 2000 /dev/urandom')
  assert.ok(text.isWellFormed())
  assert.deepEqual(JSON.parse(JSON.stringify(text)), text)
})

test('text that is not ASCII goes in and comes out, whatever locale the harness has', async () => {
  for (const locale of [{}, { LANG: 'C' }, { LC_ALL: 'POSIX' }]) {
    await using world = await setup({}, { PATH: process.env['PATH'], ...locale })
    assert.equal((await world.run("echo 中文; touch ü; ls; cat <<'E'\n表!\tx\nE")).text, '中文\nü\n表!\tx')
    assert.equal((await world.run('x=中文; echo ${#x}')).text, '2')
    const line = '溝'.repeat(1400)
    assert.equal((await world.run(`echo ${line}`)).text, line)
  }
})

test('a shell that prints byte by byte gives whole characters', async () => {
  await using world = await setup()
  const { text } = await world.run('for b in e6 ba 9d f0 9f 90 b3; do printf "\\x$b"; sleep 0.02; done')
  assert.equal(text, '溝🐳')
})

test('long output is shown by its two ends, whole characters each, and the rest is kept for reading', async () => {
  await using world = await setup({ maxOutputBytes: 1000 })
  const { text, meta } = await world.run("for i in $(seq 1 2000); do printf '🐳%d\\n' $i; done")
  const all = Array.from({ length: 2000 }, (_, index) => `🐳${index + 1}\n`).join('')
  const [, head = '', omitted, sha256 = '', tail = ''] =
    /^(.*)\n\[… (\d+) bytes left out; read artifact:(\w+) for more …\]\n(.*)$/s.exec(text) ?? []
  assert.ok(all.startsWith(head) && all.endsWith(`${tail}\n`) && text.isWellFormed())
  assert.ok(Buffer.byteLength(head) > 490 && Buffer.byteLength(tail) > 480)
  assert.equal(Buffer.byteLength(head + tail) + 1 + Number(omitted), Buffer.byteLength(all))
  assert.equal(Buffer.from((await world.agent.session.artifacts.get(sha256)) ?? []).toString(), all)
  assert.deepEqual(meta['outputs'], {
    stdout: { bytes: Buffer.byteLength(all), omittedBytes: Number(omitted), artifact: sha256 },
    stderr: { bytes: 0, omittedBytes: 0 },
  })
  const { text: short, meta: facts } = await world.run("printf 'x%.0s' $(seq 1 1000)")
  assert.equal(short, 'x'.repeat(1000))
  assert.deepEqual((facts['outputs'] as Record<string, JsonValue>)['stdout'], {
    bytes: 1000,
    omittedBytes: 0,
  })
})

test('a store that takes nothing costs the rest of the output, not the call', async () => {
  await using world = await setup({ maxOutputBytes: 10 })
  const full = new Error('no space left')
  world.agent.session.artifacts.attach({
    put: () => Promise.reject(full),
    get: () => Promise.resolve(undefined),
  })
  const { text } = await world.run('seq 1 20')
  assert.equal(text, '1\n2\n3\n[… 41 bytes left out …]\n9\n20')
})

test('without a bash sh runs the command and says so; without any shell the call fails', async () => {
  const bin = fs.mkdtempSync(join(tmpdir(), 'dsh-bin-'))
  const which = (name: string): string =>
    (process.env['PATH'] ?? '')
      .split(':')
      .map(folder => join(folder, name))
      .find(path => fs.existsSync(path)) ?? ''
  fs.symlinkSync(which('sh'), join(bin, 'sh'))
  await using world = await setup({}, { PATH: bin })
  assert.equal((await world.run('echo hi')).text, 'hi\n[there is no bash; sh ran this]')
  assert.equal((await world.run('echo hi')).meta['shell'], 'sh')
  fs.symlinkSync(which('bash'), join(bin, 'bash'))
  await using other = await setup({}, { PATH: bin })
  assert.equal(
    (await other.run('echo "${BASH_VERSION:+bash}"')).text,
    'bash',
    'it is found on the PATH alone',
  )
  fs.rmSync(bin, { recursive: true })
  await using none = await setup({}, { PATH: bin })
  assert.equal((await none.run('echo hi')).text, 'Error: no program "sh"')
})

test('credentials of the harness are not in the environment of a command', async () => {
  await using world = await setup(
    {},
    { PATH: process.env['PATH'], DEEPSEEK_API_KEY: 'canary', FOO: 'canary' },
  )
  assert.doesNotMatch((await world.run('env')).text, /canary/)
})

test('times that are none keep the plugin from loading, and are refused when asked for', async () => {
  await using world = await setup()
  for (const timeoutMs of [0, -1, NaN, Infinity])
    assert.throws(() => world.ctx.bash.resolve({ command: 'true', timeoutMs }), RangeError)
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess)
  for (const timeoutMs of [0, -1, 1.5, 2 ** 31])
    await assert.rejects(async () => ctx.plugin(bash, { timeoutMs }), { code: 'INVALID_CONFIG' })
  await ctx.dispose()
})

test('the tool, its service and its words go with the plugin', async () => {
  await using world = await setup()
  const schema = world.ctx.tools.schemas()[0]
  assert.ok(JSON.stringify(schema).length <= 500)
  const sections = async () =>
    (await world.ctx.systemPrompt.assemble()).sections.filter(({ name }) => name === 'tool:bash')
  assert.deepEqual(await sections(), [
    {
      name: 'tool:bash',
      text: 'Each bash call is a fresh shell without a terminal or input. Send the output of servers to a file and end them with &.',
    },
  ])
  await world.plugin.dispose()
  assert.deepEqual(world.ctx.tools.schemas(), [])
  assert.equal(world.ctx.get('bash'), undefined)
  assert.deepEqual(await sections(), [])
})
