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
import { sandbox } from './index.ts'
import type { SandboxInput } from './config.ts'

async function setup(config: SandboxInput = {}) {
  const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-sandbox-')))
  const dir = join(base, 'work')
  fs.mkdirSync(dir)
  const { ctx } = await createHarness()
  await ctx.plugin(files, { cwd: '/' })
  const plugin = ctx.plugin(sandbox, config)
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
