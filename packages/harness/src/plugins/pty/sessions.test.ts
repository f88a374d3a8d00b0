import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import { createHarness } from '../../testing/index.ts'
import { sandbox } from '../sandbox/index.ts'
import type { SandboxMode } from '../sandbox/index.ts'
import { OutputCapture } from '../subprocess/index.ts'
import type { PtyBackendSession, PtyBackendSpec } from './index.ts'
import { PtySessionService } from './sessions.ts'

class OpenTerminal implements PtyBackendSession {
  readonly pid = 7
  readonly notices = []
  readonly mode: SandboxMode | undefined = undefined
  status: PtyBackendSession['status'] = { state: 'running' }
  closes = 0
  failures = 0

  startSend() {
    const result = { wait: 'stdin_read', isStarted: true, status: this.status } as const
    return { output: new OutputCapture({ headBytes: 1, tailBytes: 1 }), result: Promise.resolve(result) }
  }

  read() {
    return { lines: ['line'], first: 1, total: 1, oldest: 1 }
  }

  signal(): boolean {
    return this.status.state === 'running'
  }

  resize(): void {}

  async close(): Promise<void> {
    this.closes++
    if (this.failures-- > 0) throw new Error(`cannot be ended ${this.closes}`)
    this.status = { state: 'exited', exitCode: null, signal: 'SIGHUP' }
  }
}

async function setup(mode?: SandboxMode) {
  const { ctx } = await createHarness()
  if (mode !== undefined) await ctx.plugin(sandbox, { mode, cwd: '/' })
  const errors: string[] = []
  ctx.on('internal/error', error => void errors.push((error as Error).message))
  let own: Context = ctx
  const plugin = ctx.plugin({
    name: 'terminals',
    inject: ['agents'],
    apply(inner: Context) {
      own = inner
      const service = new PtySessionService(inner)
      inner.effect(() => () => service.dispose(), 'terminals')
      inner.on('session/event', (session, event) => {
        if (event.type === 'sandbox/mode') service.narrow(session.id, event.data.mode)
      })
    },
  })
  await plugin
  const opened: OpenTerminal[] = []
  const specs: PtyBackendSpec[] = []
  const gate = { wait: Promise.resolve(), failures: 0 }
  const backend = ctx.pty.registerBackend({
    type: 'shell',
    async spawn(spec) {
      specs.push(spec)
      await gate.wait
      const terminal = new OpenTerminal()
      terminal.failures = gate.failures
      opened.push(terminal)
      return terminal
    },
  })
  const agent = async (id: string) =>
    await ctx.agents.create({ sessionId: SessionId(id), meta: { cwd: '/srv' } })
  return {
    ctx,
    own,
    plugin,
    backend,
    opened,
    specs,
    gate,
    errors,
    agent,
    pty: ctx.pty,
    shell: { type: 'shell' },
  }
}

test('a terminal belongs to the agent that opened it, and to no other of any name', async () => {
  const { pty, shell, agent, specs } = await setup()
  const handle = await agent('a')
  const { agent: owner } = handle
  const { agent: other } = await agent('b')
  const session = await pty.spawn(owner, { ...shell, name: 'build', cwd: 'sub' })
  assert.deepEqual(session, {
    sessionId: 'pty-1',
    name: 'build',
    type: 'shell',
    pid: 7,
    status: { state: 'running' },
    notices: [],
  })
  assert.equal(specs[0]?.cwd, '/srv/sub')
  assert.deepEqual(pty.read(owner, 'pty-1', {}).lines, ['line'])
  assert.deepEqual(pty.list(other), [])
  assert.throws(() => pty.read(other, 'pty-1', {}), {
    code: 'FOREIGN_SESSION',
    message: 'terminal "pty-1" belongs to another agent',
  })
  await handle.dispose()
  const { agent: successor } = await agent('a')
  assert.throws(() => pty.read(owner, 'pty-1', {}), {
    code: 'OWNER_NOT_LIVE',
    message: 'agent "a" has ended',
  })
  assert.throws(() => pty.read(successor, 'pty-1', {}), { code: 'NO_SESSION' })
})

test('what cannot be opened is refused before anything starts', async () => {
  const { pty, shell, agent, specs, ctx, backend, gate } = await setup()
  const { agent: owner } = await agent('a')
  await assert.rejects(pty.spawn(owner, { type: 'none' }), {
    code: 'NO_BACKEND',
    message: 'no terminals of type "none"; there are "shell"',
  })
  const gone = Promise.withResolvers<void>()
  gate.wait = gone.promise
  const first = pty.spawn(owner, { ...shell, name: 'x' })
  await assert.rejects(pty.spawn(owner, { ...shell, name: 'x' }), {
    code: 'DUPLICATE_NAME',
    message: 'a terminal is named "x" already',
  })
  gone.resolve()
  await first
  await assert.rejects(pty.spawn(owner, { ...shell, name: 'x' }), { code: 'DUPLICATE_NAME' })
  const stop = AbortSignal.abort(new Error('stop'))
  await assert.rejects(pty.spawn(owner, shell, stop), /stop/)
  assert.equal(specs.length, 1)
  assert.throws(() => ctx.pty.registerBackend({ type: 'shell', spawn: () => assert.fail() }), {
    code: 'DUPLICATE_BACKEND',
  })
  assert.deepEqual(pty.listBackends(), ['shell'])
  backend()
  assert.deepEqual(pty.listBackends(), [])
  assert.deepEqual(
    pty.list(owner).map(({ sessionId }) => sessionId),
    ['pty-1'],
  )
})

test('a terminal is there once it is complete, and a cancel while it comes up ends it', async () => {
  const { pty, shell, agent, gate, opened, errors } = await setup()
  const { agent: owner } = await agent('a')
  assert.equal(pty.hasOwnerActivity(owner), false)
  const controller = new AbortController()
  const coming = Promise.withResolvers<void>()
  gate.wait = coming.promise
  const spawned = pty.spawn(owner, { ...shell, name: 'x' }, controller.signal)
  assert.deepEqual(pty.list(owner), [])
  assert.equal(pty.hasOwnerActivity(owner), true)
  controller.abort(new Error('stop'))
  coming.resolve()
  await assert.rejects(spawned, /stop/)
  assert.equal(opened[0]?.closes, 1)
  assert.equal(pty.hasOwnerActivity(owner), false)
  await pty.spawn(owner, { ...shell, name: 'x' })
  assert.deepEqual(errors, [])
})

test('an owner that ends while a terminal comes up does not get it, and what cannot be ended is tried again', async () => {
  const { pty, shell, agent, gate, opened, errors, plugin } = await setup()
  const handle = await agent('a')
  const { agent: owner } = handle
  const coming = Promise.withResolvers<void>()
  Object.assign(gate, { wait: coming.promise, failures: 1 })
  const spawned = pty.spawn(owner, shell)
  await handle.dispose()
  coming.resolve()
  await assert.rejects(spawned, { code: 'OWNER_NOT_LIVE' })
  assert.deepEqual(errors, ['cannot be ended 1'])
  await plugin.dispose()
  assert.equal(opened[0]?.closes, 2)
})

test('the end of an owner closes all that it has, once, and tells of what failed', async () => {
  const { pty, shell, agent, opened } = await setup()
  const handle = await agent('a')
  const { agent: owner } = handle
  const { agent: other } = await agent('b')
  for (let index = 0; index < 3; index++) await pty.spawn(owner, shell)
  await pty.spawn(other, shell)
  await Promise.all([handle.dispose(), pty.kill(owner, 'pty-2')])
  assert.deepEqual(
    opened.map(({ closes }) => closes),
    [1, 1, 1, 0],
  )
})

test('the end of the service tries to close everything, and its failures are told together', async () => {
  const { pty, shell, agent, opened, plugin } = await setup()
  const { agent: owner } = await agent('a')
  for (let index = 0; index < 3; index++) await pty.spawn(owner, shell)
  for (const index of [0, 2]) Object.assign(opened[index] ?? {}, { failures: 9 })
  await assert.rejects(plugin.dispose(), (error: AggregateError) => {
    const messages = error.errors.map(each => (each as Error).message)
    assert.deepEqual(messages, ['cannot be ended 2', 'cannot be ended 2'])
    return true
  })
  assert.deepEqual(
    opened.map(({ closes }) => closes),
    [2, 1, 2],
  )
  assert.equal(owner.ctx.get('pty'), undefined)
  await assert.rejects(pty.spawn(owner, shell), { code: 'SERVICE_DISPOSING' })
})

test('a closed terminal is gone, and whoever asks for it is told why', async () => {
  const { pty, shell, agent, opened } = await setup()
  const { agent: owner } = await agent('a')
  await pty.spawn(owner, shell)
  await pty.spawn(owner, shell)
  assert.equal(await pty.kill(owner, 'pty-1', 'it was in the way'), true)
  assert.throws(() => pty.signal(owner, 'pty-1', 'SIGINT'), {
    code: 'NO_SESSION',
    message: 'terminal "pty-1" is closed: it was in the way',
  })
  assert.throws(() => pty.signal(owner, 'pty-9', 'SIGINT'), {
    code: 'NO_SESSION',
    message: 'no terminal "pty-9"; open are pty-2',
  })
  Object.assign(opened[1] ?? {}, { status: { state: 'exited', exitCode: 0, signal: null } })
  assert.equal(await pty.kill(owner, 'pty-2'), false)
})

test('a close that failed can be tried again, and one that goes on is joined', async () => {
  const { pty, shell, agent, opened } = await setup()
  const { agent: owner } = await agent('a')
  await pty.spawn(owner, shell)
  Object.assign(opened[0] ?? {}, { failures: 1 })
  await assert.rejects(pty.kill(owner, 'pty-1'), /cannot be ended 1/)
  await Promise.all([
    pty.kill(owner, 'pty-1'),
    assert.rejects(pty.kill(owner, 'pty-1'), { code: 'NO_SESSION' }),
  ])
  assert.equal(opened[0]?.closes, 2)
})

test('a session that may do less closes its terminals, one that may do more keeps them', async () => {
  const { ctx, pty, shell, agent } = await setup('workspace-write')
  const { agent: owner } = await agent('a')
  const { agent: other } = await agent('b')
  await pty.spawn(owner, shell)
  await pty.spawn(other, shell)
  ctx.sandboxPolicy.setMode(owner.session, 'full-access')
  await pty.spawn(owner, shell)
  ctx.sandboxPolicy.setMode(owner.session, 'workspace-write')
  assert.throws(() => pty.read(owner, 'pty-3', {}), {
    code: 'NO_SESSION',
    message:
      'terminal "pty-3" is closed: it was opened under full-access, and the session is workspace-write now',
  })
  pty.read(owner, 'pty-1', {})
  ctx.sandboxPolicy.setMode(owner.session, 'read-only')
  assert.throws(() => pty.read(owner, 'pty-1', {}), { code: 'NO_SESSION' })
  pty.read(other, 'pty-2', {})
})
