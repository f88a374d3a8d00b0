import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { Session } from '../../core/session/index.ts'
import { createHarness } from '../../testing/index.ts'
import { fs as files } from '../fs/index.ts'
import { thisMachine } from './env.ts'
import { sandbox, sandboxBounds } from './index.ts'
import { LocalSandbox } from './local.ts'
import { LoggedPolicy } from './policy.ts'
import type { SandboxInput } from './config.ts'

async function setup(config: SandboxInput = {}, { hasHome = false } = {}) {
  const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-sandbox-')))
  const dir = join(base, 'work')
  fs.mkdirSync(dir)
  const { ctx } = await createHarness()
  await ctx.plugin(files, { cwd: '/' })
  const home = join(base, 'home')
  if (hasHome) fs.mkdirSync(join(home, 'skills'), { recursive: true })
  const plugin = ctx.plugin(sandbox, { ...config, ...(hasHome && { home }) })
  await plugin
  const agentIn = async (cwd: string | undefined, id: string): Promise<Agent> => {
    const created = { sessionId: SessionId(id), meta: cwd === undefined ? {} : { cwd } }
    return (await ctx.agents.create(created)).agent
  }
  const agent = await agentIn(dir, 'main')
  let calls = 0
  const call = async (name: string, args: object, by: Agent = agent): Promise<string> => {
    const { signal } = new AbortController()
    const callId = CallId(`c${++calls}`)
    const { content } = await ctx.tools.execute({ callId, name, arguments: args, signal, agent: by })
    const [block] = content
    return block?.type === 'text' ? block.text : assert.fail('no text')
  }
  return {
    ctx,
    plugin,
    base,
    home,
    dir,
    agent,
    agentIn,
    call,
    write: (file_path: string, by?: Agent) => call('write', { file_path, content: 'x' }, by),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(base, { recursive: true, force: true })
    },
  }
}

test('the last word of the log is the mode, else the configuration', async () => {
  await using world = await setup({ mode: 'read-only' })
  const { sandboxPolicy } = world.ctx
  const { session } = world.agent
  assert.equal(sandboxPolicy.defaultMode, 'read-only')
  assert.equal(sandboxPolicy.modeOf(session), 'read-only')
  for (const mode of ['read-only', 'read-only', 'full-access'] as const) sandboxPolicy.setMode(session, mode)
  const modes = session.events.filter(({ type }) => type === 'sandbox/mode').map(({ data }) => data)
  assert.deepEqual(modes, [{ mode: 'read-only' }, { mode: 'full-access' }])
  assert.equal(sandboxPolicy.modeOf(session), 'full-access')
  assert.equal(sandboxPolicy.modeOf(Session.create(SessionId('new'))), 'read-only')
  assert.equal(sandboxPolicy.modeOf(undefined), 'read-only')
})

test('a mode that nobody knows is refused when it is written', async () => {
  await using world = await setup()
  const { session } = world.agent
  const append = session.append.bind(session) as (type: string, data: unknown) => void
  assert.throws(() => append('sandbox/mode', { mode: 'yolo' }), {
    code: 'INVALID_EVENT',
    message: /"sandbox\/mode" of plugin "sandbox"/,
  })
})

test('a grant widens one execution and no other, and never narrows', async () => {
  await using world = await setup({ mode: 'read-only' })
  const { sandboxPolicy } = world.ctx
  const { session } = world.agent
  const [granted, other] = [Symbol('granted'), Symbol('other')]
  const of = async (token: symbol) => await sandboxPolicy.resolve({ session, token })
  for (const [access, mode, network] of [
    ['workspace-write', 'workspace-write', false],
    ['network', 'workspace-write', true],
    ['full-access', 'full-access', true],
  ] as const) {
    sandboxPolicy.grant(granted, access)
    assert.equal(sandboxPolicy.grantOf(granted), access)
    const policy = await of(granted)
    assert.deepEqual([policy.mode, policy.network], [mode, network])
    assert.equal((await of(other)).mode, 'read-only')
  }
  sandboxPolicy.setMode(session, 'full-access')
  sandboxPolicy.grant(other, 'workspace-write')
  assert.equal((await of(other)).mode, 'full-access')
})

test('the fence goes with the plugin', async () => {
  await using world = await setup()
  const path = join(world.base, 'out')
  assert.equal(
    await world.write(path),
    `Error: ${path} is outside of the workspace ${world.dir}; write below it, or tell the user what to change`,
  )
  await world.plugin.dispose()
  assert.equal(await world.write(path), `Created file ${path}`)
  assert.equal(world.ctx.get('sandboxPolicy'), undefined)
})

test('a workspace is where its links lead, also behind `..`', async () => {
  await using world = await setup()
  const { sandboxPolicy } = world.ctx
  fs.mkdirSync(join(world.base, 'far/away'), { recursive: true })
  fs.symlinkSync(join(world.base, 'far/away'), join(world.dir, 'link'))
  const { session } = await world.agentIn(`${world.dir}/link/..`, 'linked')
  const policy = await sandboxPolicy.resolve({ session })
  assert.equal(policy.workspaceRoot, join(world.base, 'far'))
  assert.deepEqual(policy.writableRoots, [policy.workspaceRoot, policy.tempFolder])
  assert.equal(sandboxPolicy.writeRefusal(policy, join(world.base, 'far/x')), undefined)
  assert.match(
    sandboxPolicy.writeRefusal(policy, join(world.base, 'farther')) ?? '',
    /is outside of the workspace/,
  )
})

test('a folder in which everybody makes files is handed to nobody', async () => {
  await using world = await setup()
  const shared = join(world.base, 'shared')
  fs.mkdirSync(shared)
  fs.chmodSync(shared, 0o1777)
  const by = await world.agentIn(shared, 'shared')
  const path = join(shared, 'x')
  assert.equal(await world.write(path, by), `Error: ${path} cannot be written: the session has no workspace`)
  fs.mkdirSync(join(shared, 'own'))
  assert.match(
    await world.write(join(shared, 'own/x'), await world.agentIn(join(shared, 'own'), 'own')),
    /^Created/,
  )
})

test('a home folder, what lies above one, and the whole machine are handed to nobody', async () => {
  await using world = await setup()
  const home = join(world.base, 'home/person')
  fs.mkdirSync(join(home, 'project'), { recursive: true })
  fs.symlinkSync(home, join(world.base, 'linked'))
  const machine = { ...thisMachine(), userHome: join(world.base, 'linked') }
  const policies = new LoggedPolicy({ mode: 'workspace-write', env: {} }, machine)
  const policyIn = async (cwd: string) =>
    await policies.resolve({ session: (await world.agentIn(cwd, cwd.replaceAll('/', '-'))).session })
  for (const [cwd, root] of [
    [home, home],
    [join(world.base, 'linked'), home],
    [join(world.base, 'home'), join(world.base, 'home')],
    ['/', '/'],
  ] as const) {
    const policy = await policyIn(cwd)
    assert.deepEqual(policy.writableRoots, [policy.tempFolder])
    assert.deepEqual(policy.protectedPaths, [])
    for (const path of ['.bashrc', '.gitconfig', '.config/autostart/x.desktop', 'project/x'])
      assert.equal(
        policies.writeRefusal(policy, join(home, path)),
        `${join(home, path)} cannot be written: ${root} is a home folder or lies above one, and nothing there is written unasked; dsh should be started in a project folder`,
      )
  }
  const project = await policyIn(join(home, 'project'))
  assert.deepEqual(project.writableRoots, [join(home, 'project'), project.tempFolder])
  assert.equal(policies.writeRefusal(project, join(home, 'project/x')), undefined)
  const lone = new LoggedPolicy(
    { mode: 'workspace-write', env: {} },
    { ...thisMachine(), userHome: undefined },
  )
  const whole = await lone.resolve({ session: (await world.agentIn('/', 'whole')).session })
  assert.deepEqual(whole.writableRoots, [whole.tempFolder])
})

test('a home folder that a person named to be written is', async () => {
  await using world = await setup()
  const machine = { ...thisMachine(), userHome: world.dir }
  const policies = new LoggedPolicy({ mode: 'workspace-write', env: {} }, machine)
  policies.extend({ writable: ['~/'] })
  const policy = await policies.resolve({ session: world.agent.session })
  assert.deepEqual([policy.writableRoots[0], policy.noWorkspace], [world.dir, undefined])
})

test('file tools reach the temporary folder of their session, and not that of another', async () => {
  await using world = await setup({}, { hasHome: true })
  const { sandboxPolicy } = world.ctx
  const { tempFolder = '' } = await sandboxPolicy.resolve({ session: world.agent.session })
  assert.ok(tempFolder.startsWith(join(world.home, 'tmp')))
  assert.equal((await sandboxPolicy.resolve({ session: world.agent.session })).tempFolder, tempFolder)
  const path = join(tempFolder, 'x')
  assert.equal(await world.write(path), `Created file ${path}`)
  const other = await world.agentIn(world.dir, 'other')
  assert.match(await world.write(path, other), /is outside of the workspace/)
  assert.match(await world.call('read', { file_path: path }, other), /may hold secrets/)
  assert.match(await world.call('read', { file_path: path }), /1: x/)
})

test('secrets, the program’s own folder and what the system tells of processes are not read', async () => {
  await using world = await setup({}, { hasHome: true })
  const secret = join(world.home, 'sessions/log')
  fs.mkdirSync(join(world.home, 'sessions'))
  fs.writeFileSync(secret, 'SECRET')
  fs.writeFileSync(join(world.home, 'skills/SKILL.md'), 'to read')
  fs.symlinkSync(secret, join(world.dir, 'link'))
  const refusal = (path: string): string =>
    `Error: ${path} may hold secrets and is not read; go on without it`
  for (const path of [secret, join(world.dir, 'link')])
    assert.equal(await world.call('read', { file_path: path }), refusal(path))
  assert.match(await world.call('read', { file_path: join(world.home, 'skills/SKILL.md') }), /to read/)
  if (process.platform === 'linux')
    for (const path of ['/proc/self/environ', `/proc/${process.pid}/environ`, '/proc/1/cmdline'])
      assert.equal(await world.call('read', { file_path: path }), refusal(path))
  world.ctx.sandboxPolicy.setMode(world.agent.session, 'read-only')
  assert.equal(await world.call('read', { file_path: secret }), refusal(secret))
  world.ctx.sandboxPolicy.setMode(world.agent.session, 'full-access')
  assert.match(await world.call('read', { file_path: secret }), /SECRET/)
})

test('what people allow and deny beyond the defaults counts as long as its plugin is there', async () => {
  await using world = await setup()
  const { sandboxPolicy } = world.ctx
  const { session } = world.agent
  const [cache, secret] = [join(world.base, 'cache'), join(world.base, 'secret')]
  for (const folder of [cache, secret]) fs.mkdirSync(folder)
  fs.writeFileSync(join(secret, 'x'), 'SECRET')
  const plugin = world.ctx.plugin(sandboxBounds, {
    network: true,
    writable: [cache, join(world.base, 'missing'), 'relative'],
    unreadable: [secret],
    protect: ['package.json'],
  })
  await plugin
  const policy = await sandboxPolicy.resolve({ session })
  assert.deepEqual([policy.network, sandboxPolicy.hasNetwork], [true, true])
  assert.deepEqual(policy.writableRoots, [world.dir, cache, policy.tempFolder])
  assert.match(await world.write(join(cache, 'x')), /^Created/)
  assert.match(await world.write('package.json'), /is protected/)
  assert.match(await world.call('read', { file_path: join(secret, 'x') }), /may hold secrets/)
  await plugin.dispose()
  const { network, writableRoots } = await sandboxPolicy.resolve({ session })
  assert.deepEqual([network, writableRoots.length], [false, 2])
  assert.equal(sandboxPolicy.hasNetwork, false)
  assert.match(await world.write('package.json'), /^Created/)
})

test('a grant of full access lifts what is protected and hidden, for that execution', async () => {
  await using world = await setup({}, { hasHome: true })
  const { sandboxPolicy } = world.ctx
  const token = Symbol('call')
  const refusals = async (): Promise<(string | undefined)[]> => {
    const policy = await sandboxPolicy.resolve({ session: world.agent.session, token })
    const [kept, hidden] = [join(world.dir, '.envrc'), join(world.home, 'x')]
    return [sandboxPolicy.writeRefusal(policy, kept), sandboxPolicy.readRefusal(policy, hidden)]
  }
  for (const refusal of await refusals()) assert.ok(refusal)
  sandboxPolicy.grant(token, 'full-access')
  assert.deepEqual(await refusals(), [undefined, undefined])
})

test('without a home or a folder it is started in a policy needs none, and who needs one is told', async () => {
  await using world = await setup()
  const machine = { ...thisMachine(), userHome: undefined, startFolder: undefined }
  const policies = new LoggedPolicy({ mode: 'workspace-write', env: {} }, machine)
  policies.extend({ writable: ['~/cache'], protect: ['~/kept'] })
  const { session } = world.agent
  const policy = await policies.resolve({ session })
  assert.deepEqual(policy.writableRoots, [world.dir, policy.tempFolder])
  assert.ok(!policy.protectedPaths.some(path => path.includes('~')))
  await assert.rejects(policies.resolve({}), {
    code: 'NO_FOLDER',
    message: 'the folder that this was started in is gone or may not be read',
  })
})

test('where nothing confines a confined mode runs nothing, and full access is as it is', async () => {
  await using world = await setup()
  const local = new LocalSandbox({ ...thisMachine(), platform: 'win32' })
  const reason = 'no sandbox exists for Windows; run in WSL 2'
  assert.deepEqual(await local.readiness(), { isReady: false, reason })
  const { sandboxPolicy } = world.ctx
  for (const mode of ['read-only', 'workspace-write'] as const) {
    sandboxPolicy.setMode(world.agent.session, mode)
    await assert.rejects(
      local.confine(['true'], await sandboxPolicy.resolve({ session: world.agent.session })),
      {
        code: 'SANDBOX_UNAVAILABLE',
        message: `${mode} cannot be enforced here: ${reason}`,
      },
    )
  }
  sandboxPolicy.setMode(world.agent.session, 'full-access')
  const policy = await sandboxPolicy.resolve({ session: world.agent.session })
  assert.deepEqual((await local.confine(['true', 'x'], policy)).argv, ['true', 'x'])
})
