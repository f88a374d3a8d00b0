import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue, SessionEvent } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { Session } from '../../core/session/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness } from '../../testing/index.ts'
import { fs as files } from '../fs/index.ts'
import { sandbox } from '../sandbox/index.ts'
import type { SandboxConfig } from '../sandbox/index.ts'
import { approval } from './index.ts'
import type { ApprovalAnswer, ApprovalConfig, ApprovalQuestion } from './index.ts'

async function setup(
  { mode, cwd, ...config }: Partial<ApprovalConfig & SandboxConfig> = {},
  { inTurn = true } = {},
) {
  const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-approval-')))
  const dir = join(base, 'work')
  fs.mkdirSync(dir)
  const { ctx } = await createHarness()
  await ctx.plugin(files, { cwd: '/' })
  await ctx.plugin(sandbox, { ...(mode && { mode }), ...(cwd && { cwd }) })
  const plugin = ctx.plugin(approval, config)
  await plugin
  const ran: string[] = []
  for (const name of ['bash', 'other'])
    ctx.tools.register(
      defineTool({
        name,
        description: 'a tool',
        parameters: { command: { type: 'string', required: true } },
        execute: ({ command }) => (ran.push(command), 'ran'),
      }),
    )
  const agentIn = async (cwd: string | undefined, id: string): Promise<Agent> => {
    const { agent } = await ctx.agents.create({
      sessionId: SessionId(id),
      meta: cwd === undefined ? {} : { cwd },
    })
    if (inTurn) agent.session.append('turn/start', { turn: 1 })
    return agent
  }
  const agent = await agentIn(dir, 'main')
  let calls = 0
  const call = async (
    name: string,
    args: JsonValue,
    { by = agent, signal = new AbortController().signal }: { by?: Agent | null; signal?: AbortSignal } = {},
  ): Promise<string> => {
    const input = { callId: CallId(`c${++calls}`), name, arguments: args, signal }
    const result = await ctx.tools.execute(by === null ? input : { ...input, agent: by })
    const [block] = result.content
    return block?.type === 'text' ? block.text : assert.fail('no text')
  }
  return {
    ctx,
    plugin,
    base,
    dir,
    agent,
    agentIn,
    ran,
    call,
    write: (file_path: string, options?: { by?: Agent }) =>
      call('write', { file_path, content: 'x' }, options),
    bash: (command: string, options?: { by?: Agent; signal?: AbortSignal }) =>
      call('bash', { command }, options),
    answer: (answer: (question: ApprovalQuestion) => Promise<ApprovalAnswer | undefined>) =>
      ctx.on('approval/request', (question, next) => answer(question).then(given => given ?? next())),
    events: () =>
      agent.session.events
        .filter(({ type }) => type.startsWith('approval/') || type === 'sandbox/mode')
        .map(({ type, data }) => ({ type, ...withoutIds(data) })),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(base, { recursive: true, force: true })
    },
  }
}

function withoutIds(data: SessionEvent['data']): object {
  const { id, digest, ...rest } = data as { id?: string; digest?: string }
  assert.ok(id === undefined || /^[-0-9a-f]{36}$/.test(id))
  assert.ok(digest === undefined || /^[0-9a-f]{64}$/.test(digest))
  return rest
}

const allowed = async (): Promise<ApprovalAnswer> => ({ outcome: 'allowed-once' })
const asked = {
  type: 'approval/asked',
  toolName: 'bash',
  callId: 'c1',
  reason: 'each command is asked for in workspace-write mode',
}

test('read-only refuses write, edit and bash, and lets the rest run', async () => {
  await using world = await setup({ mode: 'read-only', yes: true })
  fs.writeFileSync(join(world.dir, 'a'), 'one')
  assert.match(await world.call('read', { file_path: 'a' }), /1: one/)
  const why = (tool: string): string =>
    `Error: ${tool} is refused in read-only mode; tell the user what you would do`
  assert.equal(await world.write('new'), why('write'))
  assert.equal(
    await world.call('edit', { file_path: 'a', old_string: 'one', new_string: 'two' }),
    why('edit'),
  )
  assert.equal(await world.bash('ls'), why('bash'))
  assert.equal(await world.call('other', { command: 'fine' }), 'ran')
  assert.deepEqual(world.ran, ['fine'])
  assert.deepEqual(fs.readdirSync(world.dir), ['a'])
  assert.deepEqual(world.events(), [])
})

test('full-access asks and refuses nothing', async () => {
  await using world = await setup({ mode: 'full-access' })
  assert.equal(await world.write(join(world.base, 'out')), `Created file ${join(world.base, 'out')}`)
  assert.equal(await world.write('.envrc'), `Created file ${join(world.dir, '.envrc')}`)
  assert.equal(await world.bash('ls'), 'ran')
  assert.deepEqual(world.events(), [])
})

test('workspace-write lets file tools write below the folder of the session and nowhere else', async () => {
  for (const yes of [false, true]) {
    await using world = await setup({ yes })
    const { dir, base } = world
    fs.mkdirSync(join(base, 'work2'))
    fs.symlinkSync(base, join(dir, 'up'))
    fs.symlinkSync(join(base, 'nowhere'), join(dir, 'dangling'))
    fs.symlinkSync(dir, join(base, 'alias'))
    const outside = (path: string): string =>
      `Error: ${path} is outside of the workspace ${dir}; write below it, or tell the user what to change`
    assert.equal(await world.write('deep/new'), `Created file ${dir}/deep/new`)
    assert.equal(await world.write(`${base}/alias/b`), `Created file ${base}/alias/b`)
    for (const path of ['../out', `${base}/out`, `${base}/work2/x`, 'up/out', 'up/deep/new', '/etc/dsh-x'])
      assert.equal(await world.write(path), outside(path.startsWith('/') ? path : join(dir, path)))
    assert.match(await world.write('dangling'), /^Error: .*dangling exists and has not been read/)
    fs.writeFileSync(join(base, 'there'), 'one')
    await world.call('read', { file_path: `${base}/there` })
    assert.equal(
      await world.call('edit', { file_path: 'up/there', old_string: 'one', new_string: 'two' }),
      outside(`${dir}/up/there`),
    )
    assert.deepEqual(
      fs.readdirSync(base).toSorted((a, b) => (a < b ? -1 : 1)),
      ['alias', 'there', 'work', 'work2'],
    )
    assert.equal(fs.readFileSync(join(base, 'there'), 'utf8'), 'one')
    assert.deepEqual(world.events(), [], 'files are never asked for')
  }
})

test('a session below a link to its folder, or at the root of all, has the same workspace', async () => {
  await using world = await setup()
  fs.symlinkSync(world.dir, join(world.base, 'alias'))
  const by = await world.agentIn(join(world.base, 'alias'), 'linked')
  assert.match(await world.write('a', { by }), /^Created/)
  assert.match(await world.write(join(world.dir, 'b'), { by }), /^Created/)
  fs.mkdirSync(join(world.base, '.dsh/tree'), { recursive: true })
  fs.symlinkSync(join(world.base, '.dsh/tree'), join(world.base, 'tree'))
  const inside = await world.agentIn(join(world.base, 'tree'), 'inside')
  assert.match(await world.write(join(world.base, '.dsh/tree/a'), { by: inside }), /^Created/)
  assert.match(await world.write('.dsh/a', { by: inside }), /is protected/)
  const everywhere = await world.agentIn('/', 'root')
  assert.match(await world.write(join(world.base, 'c'), { by: everywhere }), /^Created/)
})

test('a session without a folder writes nothing, unless one is configured', async () => {
  await using world = await setup()
  const by = await world.agentIn(undefined, 'nowhere')
  const path = join(world.dir, 'a')
  assert.equal(
    await world.write(path, { by }),
    `Error: ${path} cannot be written: the session has no workspace`,
  )
  await using other = await setup({ cwd: world.dir })
  assert.match(await other.write(path, { by: await other.agentIn(undefined, 'nowhere') }), /^Created/)
})

test('what runs or configures something is left alone, in any case and through any link', async () => {
  await using world = await setup({ yes: true })
  fs.mkdirSync(join(world.dir, '.git/hooks'), { recursive: true })
  fs.symlinkSync('.git/hooks', join(world.dir, 'link'))
  const protectedPaths = [
    '.git/hooks/pre-commit',
    '.git/config',
    '.git',
    '.GIT/Hooks/x',
    '.git/modules/sub/hooks/x',
    '.git/worktrees/w/config.worktree',
    'sub/.git/config',
    'link/post-merge',
    '.dsh/dsh.yml',
    '.envrc',
    'sub/.envrc',
    '.vscode/settings.json',
    '.idea/x',
  ]
  for (const path of protectedPaths)
    assert.equal(
      await world.write(path),
      `Error: ${join(world.dir, path)} is protected; leave it as it is and tell the user what to change`,
    )
  for (const path of [
    '.git/info/exclude',
    '.gitignore',
    'hooks/x',
    'config',
    '.envrc.example',
    'dsh/x',
    '.github/x',
  ])
    assert.match(await world.write(path), /^Created/, path)
})

test('each command is asked for, and runs where the answer allows it', async () => {
  await using world = await setup()
  world.answer(async question => {
    const { id, digest, signal, agent, ...rest } = question
    assert.ok(id !== '' && digest !== '' && signal instanceof AbortSignal && agent === world.agent)
    assert.deepEqual(rest, {
      toolName: 'bash',
      callId: 'c1',
      reason: 'each command is asked for in workspace-write mode',
      arguments: { command: 'ls' },
    })
    return { outcome: 'allowed-once' }
  })
  assert.equal(await world.bash('ls'), 'ran')
  assert.deepEqual(world.events(), [asked, { type: 'approval/decided', outcome: 'allowed-once' }])
})

test('a refusal reaches the model with its reason, and nothing runs', async () => {
  await using world = await setup()
  world.answer(async () => ({ outcome: 'rejected', reason: 'use npm' }))
  assert.equal(await world.bash('ls'), 'Error: the user rejected this call: use npm')
  assert.deepEqual(world.ran, [])
  assert.deepEqual(world.events(), [
    asked,
    { type: 'approval/decided', outcome: 'rejected', reason: 'use npm' },
  ])
})

test('where nobody answers, or not in a way that can be understood, the call is refused', async () => {
  const text = 'Error: this call needs an approval, but nobody is there to give it'
  const answers: (() => Promise<unknown>)[] = [
    async () => undefined,
    async () => ({ outcome: 'yes' }),
    async () => 'allowed-once',
    async () => ({}),
    async () => Promise.reject(new Error('broken')),
  ]
  for (const answer of answers) {
    await using world = await setup()
    world.answer(answer as () => Promise<ApprovalAnswer>)
    assert.equal(await world.bash('ls'), text)
    assert.deepEqual(world.events(), [asked, { type: 'approval/decided', outcome: 'unavailable' }])
    assert.deepEqual(world.ran, [])
  }
})

test('the first answer counts, and one who cannot answer passes the question on', async () => {
  await using world = await setup()
  world.answer(async () => undefined)
  world.answer(allowed)
  world.answer(async () => assert.fail('not asked any more'))
  assert.equal(await world.bash('ls'), 'ran')
})

test('an answer to other arguments allows nothing', async () => {
  await using world = await setup()
  let stale: string | undefined
  world.answer(async ({ digest }) => ({ outcome: 'allowed-once', digest: (stale ??= digest) }))
  assert.equal(await world.bash('ls'), 'ran')
  assert.equal(await world.bash('ls'), 'ran', 'the same arguments have the same digest')
  assert.equal(
    await world.bash('rm -rf .'),
    'Error: this call needs an approval, but nobody is there to give it: the answer was for other arguments',
  )
  assert.deepEqual(world.ran, ['ls', 'ls'])
})

test('an answer is wanted only until the turn is cancelled; a later one is discarded', async () => {
  await using world = await setup()
  const late = Promise.withResolvers<ApprovalAnswer>()
  const controller = new AbortController()
  let seen: AbortSignal | undefined
  world.answer(question => {
    seen = question.signal
    controller.abort()
    return late.promise
  })
  assert.equal(
    await world.bash('ls', { signal: controller.signal }),
    'Error: tool call aborted before dispatch',
  )
  assert.equal(seen?.aborted, true)
  late.resolve({ outcome: 'allowed-once' })
  await late.promise
  assert.deepEqual(world.events(), [asked, { type: 'approval/decided', outcome: 'cancelled' }])
  assert.deepEqual(world.ran, [])
})

test('questions at the same time are answered each for itself', async () => {
  await using world = await setup()
  const open = new Map<string, (answer: ApprovalAnswer) => void>()
  const both = Promise.withResolvers<void>()
  world.answer(({ arguments: args }) => {
    const { promise, resolve } = Promise.withResolvers<ApprovalAnswer>()
    open.set((args as { command: string }).command, resolve)
    if (open.size === 2) both.resolve()
    return promise
  })
  const calls = [world.bash('one'), world.bash('two')]
  await both.promise
  open.get('two')?.({ outcome: 'allowed-once' })
  assert.equal(await calls[1], 'ran')
  open.get('one')?.({ outcome: 'rejected' })
  assert.equal(await calls[0], 'Error: the user rejected this call')
  assert.deepEqual(world.ran, ['two'])
})

test('--yes allows each command and logs it, and still asks nobody', async () => {
  await using world = await setup({ yes: true })
  world.answer(async () => assert.fail('nobody is asked'))
  assert.equal(await world.bash('ls'), 'ran')
  assert.deepEqual(world.events(), [asked, { type: 'approval/decided', outcome: 'allowed-once' }])
})

test('the policy never refuses before anybody is asked, also under --yes', async () => {
  for (const yes of [false, true]) {
    await using world = await setup({ policy: 'never', yes })
    world.ctx.on('approval/request', () => assert.fail('nobody is asked'), { prepend: true })
    assert.equal(
      await world.bash('ls'),
      'Error: the user rejected this call: approvals are off in this session',
    )
    assert.deepEqual(world.ran, [])
  }
})

test('mode and policy may change at any time, by an event that a resumed session reads', async () => {
  await using world = await setup()
  const { permissions } = world.ctx
  const { session } = world.agent
  permissions.setMode(session, 'workspace-write')
  permissions.setMode(session, 'workspace-write')
  permissions.setMode(session, 'full-access')
  assert.equal(await world.bash('one'), 'ran')
  permissions.setMode(session, 'read-only')
  assert.match(await world.bash('two'), /refused in read-only mode/)
  permissions.setPolicy(session, 'never')
  assert.deepEqual(world.events(), [
    { type: 'sandbox/mode', mode: 'workspace-write' },
    { type: 'sandbox/mode', mode: 'full-access' },
    { type: 'sandbox/mode', mode: 'read-only' },
    { type: 'approval/policy', policy: 'never' },
  ])
  const copy = Session.create(SessionId('copy'), session.events)
  assert.equal(permissions.modeOf(copy), 'read-only')
  assert.equal(permissions.policyOf(copy), 'never')
  assert.equal(permissions.modeOf(Session.create(SessionId('new'))), 'workspace-write')
  assert.equal(permissions.modeOf(undefined), 'workspace-write')
})

test('a mode that becomes narrower while somebody thinks about an answer counts', async () => {
  await using world = await setup()
  world.answer(async () => {
    world.ctx.permissions.setMode(world.agent.session, 'read-only')
    return { outcome: 'allowed-once' }
  })
  assert.match(await world.bash('ls'), /refused in read-only mode/)
})

test('no listener can let through what the mode refuses', async () => {
  await using world = await setup()
  const stop = world.ctx.on('tools/pre-execute', async () => ({ kind: 'allow' }), { prepend: true })
  assert.equal(await world.bash('ls'), 'Error: the call was not put to the permission mode')
  assert.equal(await world.write('../out'), 'Error: the call was not put to the permission mode')
  world.ctx.permissions.setMode(world.agent.session, 'read-only')
  assert.match(await world.bash('ls'), /refused in read-only mode/)
  world.ctx.permissions.setMode(world.agent.session, 'workspace-write')
  stop()
  world.ctx.on('tools/pre-execute', async (_, next) => (await next(), { kind: 'allow' }), { prepend: true })
  assert.match(await world.write('../out'), /is outside of the workspace/)
  assert.deepEqual(world.ran, [])
  assert.deepEqual(fs.readdirSync(world.base), ['work'])
})

test('a listener that refuses, or asks by itself, is heard', async () => {
  await using world = await setup()
  const stop = world.ctx.on('tools/pre-execute', async () => ({ kind: 'deny', reason: 'not today' }))
  assert.equal(await world.bash('ls'), 'Error: not today')
  stop()
  world.ctx.on('tools/pre-execute', async () => ({ kind: 'ask', reason: 'dangerous' }))
  world.answer(async ({ reason }) => ({ outcome: 'rejected', reason: `because ${reason}` }))
  assert.equal(await world.bash('ls'), 'Error: the user rejected this call: because dangerous')
  assert.match(await world.call('other', { command: 'x' }), /because dangerous/)
})

test('a tool of another name that changes files is held at the file', async () => {
  await using world = await setup()
  world.ctx.tools.register(
    defineTool({
      name: 'sneak',
      description: 'a tool',
      parameters: { path: { type: 'string', required: true } },
      async execute({ path }, exec) {
        const target = await world.ctx.fs.resolve(path)
        const intent = await world.ctx.waterfall('fs/write-intent', target, exec, async () => undefined)
        await world.ctx.fs.writeText(target, 'x', intent)
        return 'written'
      },
    }),
  )
  assert.match(await world.call('sneak', { path: join(world.base, 'out') }), /is outside of the workspace/)
  assert.equal(await world.call('sneak', { path: join(world.dir, 'in') }), 'written')
  world.ctx.permissions.setMode(world.agent.session, 'read-only')
  assert.match(
    await world.call('sneak', { path: join(world.dir, 'in') }),
    /writing is refused in read-only mode/,
  )
})

test("mistaken arguments are the tool's matter", async () => {
  await using world = await setup()
  assert.match(await world.call('write', { file_path: 1 as never, content: '' }), /invalid arguments/)
  assert.match(await world.call('write', 'text' as never), /invalid arguments/)
  assert.match(await world.write(' '), /file_path: is blank/)
  fs.writeFileSync(join(world.dir, 'file'), '')
  assert.match(await world.write('file/below'), /leads through a file/)
})

test('outside of a turn nothing is asked and nothing is logged', async () => {
  await using world = await setup({}, { inTurn: false })
  assert.equal(
    await world.bash('ls'),
    'Error: this call needs an approval, but nobody is there to give it: an approval of "bash" is asked outside of a turn',
  )
  assert.deepEqual(world.events(), [])
  assert.match(await world.call('bash', { command: 'ls' }, { by: null }), /belongs to no agent/)
})

test('an event that says nothing we know is refused when it is written', async () => {
  await using world = await setup()
  const { session } = world.agent
  const append = session.append.bind(session) as (type: string, data: unknown) => void
  for (const [type, data] of [
    ['approval/policy', {}],
    ['approval/decided', { id: '1', outcome: 'maybe' }],
    ['approval/asked', { toolName: 'bash' }],
  ] as const)
    assert.throws(() => append(type, data), {
      code: 'INVALID_EVENT',
      message: new RegExp(`"${type}" of plugin "approval"`),
    })
  append('sandbox/mode', { mode: 'read-only', later: 'field' })
})

test('the model is told of the mode it works in', async () => {
  await using world = await setup()
  const told = async (): Promise<unknown> => world.ctx.systemPrompt.renderContexts({ agent: world.agent })
  const as = (text: string) => [{ name: 'permissions', text }]
  assert.deepEqual(
    await told(),
    as(
      'Permission mode: workspace-write. write and edit work below the working folder only; the user is asked before each bash command.',
    ),
  )
  world.ctx.permissions.setPolicy(world.agent.session, 'never')
  assert.deepEqual(
    await told(),
    as(
      'Permission mode: workspace-write. write and edit work below the working folder only; bash is refused.',
    ),
  )
  world.ctx.permissions.setMode(world.agent.session, 'read-only')
  assert.deepEqual(await told(), as('Permission mode: read-only. write, edit and bash are refused.'))
  world.ctx.permissions.setMode(world.agent.session, 'full-access')
  assert.deepEqual(await told(), as('Permission mode: full-access. Nothing is asked or refused.'))
  await using other = await setup({ yes: true })
  assert.deepEqual(
    await other.ctx.systemPrompt.renderContexts({ agent: other.agent }),
    as(
      'Permission mode: workspace-write. write and edit work below the working folder only; bash is allowed.',
    ),
  )
})

test('everything goes with the plugin, and questions that are open are given up', async () => {
  await using world = await setup()
  world.answer(async () => {
    void world.plugin.dispose()
    return await new Promise<never>(() => {})
  })
  assert.equal(await world.bash('ls'), 'Error: the approval of this call was cancelled')
  await world.plugin.dispose()
  assert.equal(world.ctx.get('approval'), undefined)
  assert.equal(world.ctx.get('permissions'), undefined)
  assert.equal(await world.bash('ls'), 'ran')
})
