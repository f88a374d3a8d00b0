import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { bash } from '../../src/plugins/bash/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { tasks } from '../../src/plugins/tasks/index.ts'
import type { Task } from '../../src/plugins/tasks/index.ts'
import { createHarness } from '../../src/testing/index.ts'

const noProc = !fs.existsSync('/proc/self/stat')

async function setup({ hasTasks = true } = {}) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-background-')))
  const { ctx } = await createHarness()
  const processes = ctx.plugin(subprocess)
  await processes
  if (hasTasks) await ctx.plugin(tasks)
  const shell = ctx.plugin(bash, { cwd: '/', graceMs: 500 })
  await shell
  const handle = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir } })
  const { agent } = handle
  let calls = 0
  const call = async (
    name: string,
    args: Record<string, JsonValue>,
    signal = new AbortController().signal,
  ) => {
    const input = { callId: CallId(`c${++calls}`), name, signal, agent, arguments: args }
    const { content } = await ctx.tools.execute(input)
    return content.map(block => (block.type === 'text' ? block.text : '')).join('')
  }
  const run = (command: string, args: Record<string, JsonValue> = {}, signal?: AbortSignal) =>
    call('bash', { command, description: 'test it', ...args }, signal)
  /** Waits until a task has printed `text`. */
  const printed = (id: string, text: string): Promise<void> =>
    until(() => ctx.tasks.read(agent, id).text.includes(text))
  const ended = (id: string): Promise<Task> => ctx.tasks.wait(agent, id, { ms: 20_000 })
  const clean = async (): Promise<void> => {
    await ctx.dispose()
    fs.rmSync(dir, { recursive: true, force: true })
  }
  return {
    ctx,
    processes,
    shell,
    dir,
    agent,
    handle,
    call,
    run,
    printed,
    ended,
    [Symbol.asyncDispose]: clean,
  }
}

/** Looks again and again, but not for ever. */
async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isSo()) {
    assert.ok(performance.now() < deadline, 'it never came')
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return noProc || !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

test('a command in the background answers at once, and is read, waited for and told of as a task', async () => {
  await using world = await setup()
  const started = await world.run('echo one; until [ -e go ]; do sleep 0.05; done; echo two; echo err >&2', {
    run_in_background: true,
  })
  assert.equal(
    started,
    '[started in the background as bash-1; you are told when it ends, task_output shows what it prints]',
  )
  await world.printed('bash-1', 'one')
  assert.equal(await world.call('task_output', { task_id: 'bash-1' }), 'one\n[status: running]')
  assert.equal(await world.call('task_output', { task_id: 'bash-1' }), '(no new output)\n[status: running]')
  assert.match(await world.call('task_list', {}), /^bash-1 running, \d+ s: test it$/)
  fs.writeFileSync(join(world.dir, 'go'), '')
  const text = await world.call('task_output', { task_id: 'bash-1', wait: true })
  const [, artifact = ''] = /artifact:(\w+)/.exec(text) ?? []
  assert.equal(
    text,
    `two\n[stderr]\nerr\n[all that it printed: artifact:${artifact}]\n[status: completed, exit code 0]`,
  )
  assert.equal(
    Buffer.from((await world.agent.session.artifacts.get(artifact)) ?? []).toString(),
    'one\ntwo\n[stderr]\nerr\n',
  )
  assert.deepEqual(world.agent.inbox.nextStep, [], 'who waited for the end is not told of it')
})

test('a command in the background outlives its time-out and its call', async () => {
  await using world = await setup()
  const controller = new AbortController()
  await world.run('echo $$; sleep 60', { run_in_background: true }, controller.signal)
  controller.abort()
  await world.printed('bash-1', '\n')
  assert.equal(world.ctx.tasks.get(world.agent, 'bash-1').status, 'running')
  assert.equal(
    await world.run('true', { run_in_background: true, timeoutMs: 5 }),
    'Error: invalid arguments: timeoutMs: does not go with run_in_background',
  )
})

test(
  'task_kill ends everything that a task started, whatever it does with signals and sessions',
  { skip: noProc },
  async () => {
    await using world = await setup()
    const command = `trap '' TERM; setsid sh -c "trap '' TERM; echo pid \\$\\$; sleep 60; sleep 60" & echo pid $$; sleep 60; sleep 60`
    await world.run(command, { run_in_background: true })
    const pids = (): number[] =>
      [...world.ctx.tasks.read(world.agent, 'bash-1').text.matchAll(/pid (\d+)/g)].map(([, pid]) =>
        Number(pid),
      )
    await until(() => pids().length === 2)
    const text = await world.call('task_kill', { task_id: 'bash-1', reason: 'no longer needed' })
    assert.match(text, /\[status: killed, no longer needed\]$/)
    assert.deepEqual(pids().filter(isRunning), [])
    assert.match(
      await world.call('task_kill', { task_id: 'bash-1' }),
      /\[status: killed, no longer needed\]$/,
    )
  },
)

test('a command that fails in the background says how', async () => {
  await using world = await setup()
  await world.run('exit 3', { run_in_background: true })
  await world.run('kill -9 $$', { run_in_background: true })
  assert.deepEqual((await world.ended('bash-1')).status, 'failed')
  assert.equal((await world.ended('bash-1')).detail, 'exit code 3')
  assert.equal((await world.ended('bash-2')).detail, 'killed by signal SIGKILL')
  assert.equal(
    await world.run('true', { run_in_background: true, workdir: 'none' }),
    `Error: no folder "${join(world.dir, 'none')}" to work in`,
  )
  assert.equal(world.ctx.tasks.list(world.agent).length, 2, 'what could not start is no task')
})

test('a person moves a running command to the background, and nothing of its output is lost or shown twice', async () => {
  await using world = await setup()
  const told = Promise.withResolvers<void>()
  world.ctx.on('bash/output', () => told.resolve())
  const controller = new AbortController()
  const running = world.run(
    'echo one; until [ -e go ]; do sleep 0.05; done; echo two',
    { timeoutMs: 20_000 },
    controller.signal,
  )
  await told.promise
  const [callId = CallId('none')] = world.ctx.tasks.movableCalls(world.agent)
  const task = await world.ctx.tasks.background(world.agent, callId)
  assert.deepEqual([task.id, task.label, task.callId], ['bash-1', 'test it', callId])
  assert.equal(
    await running,
    'one\n[the user moved it to the background as bash-1; you are told when it ends, task_output shows what it prints]',
  )
  controller.abort()
  assert.deepEqual(world.ctx.tasks.movableCalls(world.agent), [])
  await assert.rejects(world.ctx.tasks.background(world.agent, callId), { code: 'NOT_MOVABLE' })
  fs.writeFileSync(join(world.dir, 'go'), '')
  await world.ended('bash-1')
  assert.match(
    await world.call('task_output', { task_id: 'bash-1' }),
    /^two\n.*\n\[status: completed, exit code 0\]$/,
  )
})

test(
  'what runs in the background ends with its agent, and so does what commands left running',
  { skip: noProc },
  async () => {
    await using world = await setup()
    await world.run('echo pid $$; sleep 60', { run_in_background: true })
    await world.printed('bash-1', '\n')
    const left = Number((await world.run('setsid sleep 60 >/dev/null 2>&1 & echo $!')).split('\n')[0])
    const pid = Number(world.ctx.tasks.read(world.agent, 'bash-1').text.slice(4))
    assert.deepEqual([pid, left].filter(isRunning), [pid, left])
    await world.handle.dispose()
    assert.deepEqual([pid, left].filter(isRunning), [])
    const { events } = world.agent.session
    assert.deepEqual(
      events
        .filter(({ type }) => type === 'task/end')
        .map(({ data }) => (data as { status?: string }).status),
      ['lost'],
    )
  },
)

test('a flood in the background is kept at both ends, and told to be one', async () => {
  await using world = await setup()
  await world.run('echo begin; head -c 20M /dev/zero | tr "\\0" x; echo end', { run_in_background: true })
  const task = await world.ended('bash-1')
  assert.equal(task.output?.bytes, 20 * 2 ** 20 + 10)
  const text = await world.call('task_output', { task_id: 'bash-1' })
  assert.ok(Buffer.byteLength(text) < 26_000)
  assert.match(text, /^begin\nx+\n\[… \d+ bytes left out; read artifact:\w{64} for more …\]\nx+end\n/)
})

test('a background command outlives the plugin that started it, and dies with the processes', async () => {
  await using world = await setup()
  await world.run('echo one; until [ -e go ]; do sleep 0.05; done; echo two', { run_in_background: true })
  await world.run('sleep 60', { run_in_background: true })
  await world.printed('bash-1', 'one')
  await world.shell.dispose()
  assert.equal(world.ctx.tasks.get(world.agent, 'bash-1').status, 'running')
  fs.writeFileSync(join(world.dir, 'go'), '')
  assert.equal((await world.ended('bash-1')).status, 'completed')
  assert.equal(world.ctx.tasks.read(world.agent, 'bash-1').text, 'one\ntwo\n')
  await world.processes.dispose()
  assert.equal((await world.ended('bash-2')).detail, 'killed by signal SIGTERM')
})

test('where nothing keeps tasks the argument is not offered, and refused when it comes', async () => {
  await using world = await setup({ hasTasks: false })
  const schema = world.ctx.tools.schemas().find(({ name }) => name === 'bash')
  assert.equal(Object.hasOwn((schema?.parameters['properties'] ?? {}) as object, 'run_in_background'), false)
  assert.equal(
    await world.run('touch made', { run_in_background: true }),
    'Error: nothing here runs commands in the background',
  )
  assert.deepEqual(fs.readdirSync(world.dir), [])
})

test('a call says what it would run, where, and what more it asks for', async () => {
  await using world = await setup()
  const effectsOf = (args: object) =>
    world.ctx.tools.effectsOf({ name: 'bash', arguments: { command: 'make', description: 'x', ...args } })
  assert.deepEqual(await effectsOf({ workdir: 'sub' }), [
    { kind: 'command', command: 'make', workdir: 'sub' },
  ])
  const wants = { access: 'network', justification: 'to install' }
  assert.deepEqual(
    await effectsOf({ sandbox_permissions: 'network', justification: 'to install', run_in_background: true }),
    [{ kind: 'command', command: 'make', wants }],
  )
})
