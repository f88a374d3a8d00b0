import assert from 'node:assert/strict'
import fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import type { WiderAccess } from '../../src/core/tools/index.ts'
import type { Context } from '../../src/kernel/index.ts'
import { bash } from '../../src/plugins/bash/index.ts'
import { fs as fsPlugin } from '../../src/plugins/fs/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import type { SandboxMode } from '../../src/plugins/sandbox/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { tasks } from '../../src/plugins/tasks/index.ts'
import { createHarness } from '../../src/testing/index.ts'
import { skipWithoutBwrap } from './bwrap.ts'

const skip = skipWithoutBwrap()
const limits = { skip, timeout: 60_000 }

async function setup({
  mode = 'workspace-write' as SandboxMode,
  mount = true,
  granted = undefined as WiderAccess | undefined,
} = {}) {
  // Below /tmp a confined command has a folder of its own.
  const outside = fs.realpathSync(fs.mkdtempSync('/var/tmp/dsh-sandboxed-'))
  const dir = join(outside, 'workspace')
  fs.mkdirSync(dir)
  const { ctx } = await createHarness()
  await ctx.plugin(fsPlugin)
  await ctx.plugin(subprocess)
  await ctx.plugin(tasks)
  if (mount) await ctx.plugin(sandbox, { mode })
  await ctx.plugin(bash, { cwd: '/', graceMs: 500 })
  if (granted !== undefined) grantAll(ctx, granted)
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir } })
  let calls = 0
  const run = async (command: string, args: Record<string, JsonValue> = {}, name = 'bash') => {
    const { signal } = new AbortController()
    const input = { command, description: 'test it', ...args }
    const result = await ctx.tools.execute({
      callId: CallId(`c${++calls}`),
      name,
      signal,
      agent,
      arguments: input,
    })
    const text = result.content.map(block => (block.type === 'text' ? block.text : '')).join('')
    const code = result.isError ? result.error.info?.code : undefined
    return { text, code, meta: result.meta as Record<string, JsonValue> | undefined }
  }
  const clean = async (): Promise<void> => {
    await ctx.dispose()
    fs.rmSync(outside, { recursive: true, force: true })
  }
  return { ctx, agent, dir, outside, run, [Symbol.asyncDispose]: clean }
}

/** What the approval plugin does when a person allows a call more than its mode. */
function grantAll(ctx: Context, access: WiderAccess): void {
  ctx.on('tools/pre-execute', async (execution, next) => {
    ctx.sandboxPolicy.grant(execution.token, access)
    return next()
  })
}

test(
  'a confined command works in its workspace, and what it was denied is told apart from its own failures',
  limits,
  async () => {
    await using world = await setup()
    assert.equal((await world.run('echo hi > made; cat made')).text, 'hi')
    assert.equal(fs.readFileSync(join(world.dir, 'made'), 'utf8'), 'hi\n')
    const denied = await world.run(`echo hi > ${world.outside}/made`)
    assert.match(
      denied.text,
      /Read-only file system\n\[sandbox: file access denied under workspace-write mode: .*\]\n\[if the command needs it, call bash again with sandbox_permissions full-access and a justification\]\n\[exit code: 1\]$/,
    )
    assert.deepEqual(denied.meta?.['sandbox'], {
      mode: 'workspace-write',
      network: false,
      enforcement: 'full',
      denied: true,
      access: 'files',
    })
    assert.equal(fs.existsSync(join(world.outside, 'made')), false)
    const failed = await world.run('echo no such thing >&2; exit 1')
    assert.equal(failed.text, '[stderr]\nno such thing\n[exit code: 1]')
    const survived = await world.run(`echo hi > ${world.outside}/made; true`)
    assert.doesNotMatch(survived.text, /\[sandbox/, 'what went well in the end was not denied')
  },
)

test(
  'a command without the network that it needs is told of it, also when it tries too long',
  limits,
  async () => {
    await using world = await setup()
    const note = /\[sandbox: there is no network under workspace-write mode\]/
    const fetches = `node -e "fetch('http://example.org').catch(e => { console.log(e.cause); process.exit(1) })"`
    assert.match((await world.run(fetches)).text, note)
    assert.doesNotMatch((await world.run(`${fetches}; true`)).text, note, 'what went well in the end')
    const tries = 'echo "Temporary failure in name resolution, trying again" >&2; sleep 60'
    const late = await world.run(tries, { timeoutMs: 300 })
    assert.match(late.text, note)
    assert.match(late.text, /timed out after 300 ms/)
    assert.doesNotMatch(
      (await world.run('echo "Permission denied" >&2; sleep 60', { timeoutMs: 300 })).text,
      /sandbox:/,
    )
  },
)

test('nothing is writable in read-only mode, and temporary files go nowhere', limits, async () => {
  await using world = await setup({ mode: 'read-only' })
  const { text } = await world.run('touch made')
  assert.match(text, /\[sandbox: file access denied under read-only mode\]/)
  assert.equal((await world.run('pwd; test -d "$HOME"; echo $?')).text, `${world.dir}\n0`)
})

test('temporary files and the home folder are there in the sandbox', limits, async () => {
  await using world = await setup()
  assert.equal(
    (await world.run('f=$(mktemp) && echo ok > $f && cat $f; cat <<< here; ls -d "$HOME" | wc -l')).text,
    'ok\nhere\n1',
  )
  assert.equal((await world.run('echo x > "$TMPDIR/kept"')).text, '(no output)')
})

test('a call that was granted more gets it, and no other does', limits, async () => {
  await using world = await setup({ granted: 'full-access' })
  const args = { sandbox_permissions: 'full-access', justification: 'to write there' }
  assert.equal((await world.run(`echo hi > ${world.outside}/made`, args)).text, '(no output)')
  assert.equal(fs.existsSync(join(world.outside, 'made')), true)
})

test('more access that was not granted starts nothing', limits, async () => {
  await using world = await setup()
  for (const access of ['network', 'full-access']) {
    const args = { sandbox_permissions: access, justification: 'because' }
    const { text, code } = await world.run('touch made', args)
    assert.deepEqual(
      [text, code],
      [`Error: ${access} was not granted to this call`, 'ESCALATION_UNAVAILABLE'],
    )
  }
  assert.equal((await world.run('touch made', { sandbox_permissions: 'network' })).code, 'INVALID_ARGS')
  assert.equal((await world.run('touch made', { justification: 'because' })).code, 'INVALID_ARGS')
  assert.deepEqual(
    fs.readdirSync(world.dir).filter(name => name === 'made'),
    [],
  )
  const held = { sandbox_permissions: 'workspace-write', justification: 'because' }
  assert.equal((await world.run('echo ok', held)).text, 'ok', 'what the mode gives needs no grant')
})

test('without a sandbox a policy that confines runs nothing', { timeout: 60_000 }, async () => {
  await using world = await setup({ mount: false })
  const policy = { mode: 'workspace-write', network: false } as never
  const spec = world.ctx.bash.resolve({ command: `touch ${world.dir}/made` })
  await assert.rejects(world.ctx.bash.run({ ...spec, policy }), { code: 'SANDBOX_UNAVAILABLE' })
  assert.deepEqual(fs.readdirSync(world.dir), [])
  const schema = world.ctx.tools.schemas().find(({ name }) => name === 'bash')
  assert.deepEqual(
    Object.keys((schema?.parameters['properties'] ?? {}) as object).filter(name => /sandbox|just/.test(name)),
    [],
  )
  const args = { sandbox_permissions: 'network', justification: 'because' }
  assert.equal((await world.run('touch made', args)).code, 'ESCALATION_UNAVAILABLE')
})

test('a runner that fails is not taken for a command that fails', limits, async () => {
  await using world = await setup()
  const broken = (argv: readonly [string, ...string[]]) =>
    Promise.resolve({
      argv,
      enforcement: 'full' as const,
      denialSignatures: ['denied'],
      runnerFailureRules: [{ exitCodes: [1], fatalSignatures: ['bwrap: '] }],
    })
  const real = world.ctx.sandbox
  const confine = world.ctx.sandbox.confine.bind(real)
  try {
    Object.assign(real, { confine: broken })
    const failed = await world.run('echo "bwrap: no namespaces, access denied" >&2; exit 1')
    assert.deepEqual(
      [failed.text, failed.code],
      [
        'Error: the sandbox failed, and the command did not run: bwrap: no namespaces, access denied',
        'SANDBOX_UNAVAILABLE',
      ],
    )
    assert.match(
      (await world.run('echo "bwrap: x" >&2; exit 2')).text,
      /^\[stderr\]\nbwrap: x\n\[exit code: 2\]$/,
    )
    Object.assign(real, {
      confine: () =>
        Promise.resolve({
          argv: ['/no/such/bwrap'],
          enforcement: 'full',
          denialSignatures: [],
          runnerFailureRules: [],
        }),
    })
    assert.equal((await world.run('true')).code, 'SANDBOX_UNAVAILABLE')
    assert.equal((await world.run('true', { workdir: 'none' })).code, 'WORKDIR_NOT_FOUND')
  } finally {
    Object.assign(real, { confine })
  }
})

test('time-outs, kills and the end of the shell leave nothing of a confined command', limits, async () => {
  await using world = await setup()
  const nap = `sleep 71.${process.pid}`
  const deaf = `trap '' TERM; setsid sh -c "trap '' TERM; ${nap}; ${nap}" & echo begun; ${nap}; ${nap}`
  const late = await world.run(deaf, { timeoutMs: 500 })
  assert.equal(late.text, 'begun\n[timed out after 500 ms]\n[killed by signal: SIGKILL]')
  const { text } = await world.run(`setsid ${nap} >/dev/null 2>&1 & nohup ${nap} >/dev/null 2>&1 & echo done`)
  assert.equal(text, 'done')
  await world.run(`echo begun; ${nap}`, { run_in_background: true })
  while (!world.ctx.tasks.read(world.agent, 'bash-1').text.includes('begun'))
    await new Promise(resolve => setTimeout(resolve, 5))
  const killed = await world.run('', { task_id: 'bash-1' }, 'task_kill')
  assert.equal(killed.text, '[status: killed, exit code 143]')
  assert.deepEqual(commandLines(nap), [])
})

test('a confined command that is told to end can put away what it was about', limits, async () => {
  await using world = await setup()
  const command = "trap 'rm lock; echo bye; exit 7' TERM; touch lock; sleep 60 & wait"
  const { text } = await world.run(command, { timeoutMs: 500 })
  assert.equal(text, 'bye\n[timed out after 500 ms]\n[exit code: 7]')
  assert.equal(fs.existsSync(join(world.dir, 'lock')), false)
})

test(
  'hostile commands are answered at once in the sandbox, with their output made harmless',
  limits,
  async () => {
    await using world = await setup()
    const cases = {
      'sleep 60 & echo done': 'done',
      '(while :; do sleep 1; done) & echo done': 'done',
      'setsid sleep 60 & echo done': 'done',
      'nohup sleep 60 >/dev/null 2>&1 & echo up': 'up',
      'sleep 60 | cat & echo hi': 'hi',
      true: '(no output)',
      false: '(no output)\n[exit code: 1]',
      'exit 3': '(no output)\n[exit code: 3]',
      'kill -9 $$': '(no output)\n[exit code: 137]',
      "printf '\\033]0;title\\a\\033[2J\\033[?1049hx'": 'x',
      "printf 'a\\0b'": 'a␀b',
      "for i in 1 2 3; do printf '\\r%d%%' $i; done; echo": '3%',
      "printf '\\xed\\xa0\\x80'": '\ufffd\ufffd\ufffd',
    }
    for (const [command, expected] of Object.entries(cases))
      assert.equal((await world.run(command, { timeoutMs: 20_000 })).text, expected, command)
    const { text } = await world.run('head -c 2000 /dev/urandom')
    assert.ok(text.isWellFormed())
  },
)

test('a background server is reached from its own sandbox alone', limits, async () => {
  await using world = await setup()
  const port = 20_000 + (process.pid % 20_000)
  const server = `node -e "require('http').createServer((q, s) => s.end('served')).listen(${port}, '127.0.0.1', () => console.log('up'))"`
  const get = `node -e "fetch('http://127.0.0.1:${port}').then(r => r.text()).then(console.log, e => console.log(e.cause.code))"`
  assert.equal((await world.run(`${server} & sleep 0.5; ${get}`)).text, 'up\nserved')
  await world.run(server, { run_in_background: true })
  assert.match((await world.run(get)).text, /^ECONNREFUSED/)
})

function commandLines(part: string): string[] {
  return fs
    .readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const line = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return line.includes(part) && Number(pid) !== process.pid ? [line] : []
      } catch {
        return []
      }
    })
}
