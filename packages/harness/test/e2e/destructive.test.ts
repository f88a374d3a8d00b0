import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import { defineTool } from '@dsh/harness/tools'
import { createHarness } from '@dsh/harness/testing'
import { approval } from '@dsh/harness/plugins/approval'
import type { ApprovalConfig } from '@dsh/harness/plugins/approval'
import { fs } from '@dsh/harness/plugins/fs'
import { rewind } from '@dsh/harness/plugins/rewind'
import { sandbox } from '@dsh/harness/plugins/sandbox'
import type { SandboxMode } from '@dsh/harness/plugins/sandbox'
import { destructive } from '@dsh/harness/plugins/destructive'

interface WorldOptions extends Partial<ApprovalConfig> {
  readonly mode?: SandboxMode
  readonly isConfined?: boolean
  readonly hasRewind?: boolean
  /** What the person answers; absent = nobody is there. */
  readonly answer?: 'allowed-once' | 'rejected'
}

/** A session in a folder with a tool that runs commands, and all who have a say in it. */
async function createWorld({
  mode,
  isConfined = false,
  hasRewind = true,
  answer,
  ...config
}: WorldOptions = {}) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'destructive-')))
  const [work, home] = [join(base, 'work'), join(base, 'home')]
  mkdirSync(work)
  writeFileSync(join(work, 'file'), 'only here\n')
  writeFileSync(join(work, '.gitignore'), 'ignored\n')
  writeFileSync(join(work, 'ignored'), 'small\n')
  writeFileSync(join(base, 'outside'), 'x')
  const { ctx } = await createHarness()
  await ctx.plugin(fs, { cwd: '/' })
  await ctx.plugin(sandbox, mode === undefined ? {} : { mode })
  const inner = ctx.isolate('sandbox')
  inner.provide('sandbox', {
    readiness: async () =>
      isConfined
        ? { isReady: true, runner: 'test', enforcement: 'full' }
        : { isReady: false, reason: 'none here' },
    confine: async () => assert.fail('nothing is started'),
  })
  await inner.plugin(approval, { rules: join(home, 'rules.json'), ...config })
  if (hasRewind) await ctx.plugin(rewind, { home })
  const fiber = inner.plugin(destructive, { yes: config.yes === true })
  await fiber
  ctx.tools.register(
    defineTool({
      name: 'shell',
      description: 'runs',
      parameters: { command: { type: 'string', required: true } },
      effects: ({ command }) => [{ kind: 'command', command }],
      execute: ({ command }) =>
        execFileSync('bash', ['-c', command], { cwd: work, encoding: 'utf8', timeout: 10_000 }),
    }),
  )
  const asked: (string | undefined)[] = []
  if (answer !== undefined)
    ctx.on('approval/request', async ({ reason }) => {
      asked.push(reason)
      return { outcome: answer }
    })
  const { agent } = await ctx.agents.create({ sessionId: SessionId('main'), meta: { cwd: work } })
  agent.session.append('turn/start', { turn: 1 })
  agent.session.append('step/start', { turn: 1, step: 1 })
  let calls = 0
  const run = async (command: string): Promise<string> => {
    const input = { callId: CallId(`c${++calls}`), name: 'shell', arguments: { command }, agent }
    const { content } = await ctx.tools.execute({ ...input, signal: new AbortController().signal })
    return content.map(block => (block.type === 'text' ? block.text : '')).join('')
  }
  return {
    ctx,
    fiber,
    base,
    work,
    asked,
    run,
    session: agent.session,
    has: (path: string) => existsSync(join(work, path)),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      rmSync(base, { recursive: true, force: true })
    },
  }
}

const kept = (seq: number | undefined, rest = ''): string =>
  `\n[the files before this call are kept: dsh rewind main ${seq} --files brings them back${rest}]`

test('what is kept is named after the call, and holds what was there', async () => {
  await using world = await createWorld({ isConfined: true })
  const text = await world.run('rm file ignored; echo gone')
  const point = world.session.last('restore/point')
  assert.equal(text, `gone\n${kept(point?.seq)}`)
  const found = world.ctx.rewind.pointAt(world.session, point?.seq ?? 0)
  assert.ok(found)
  const files = await world.ctx.rewind.filesAt(found)
  assert.deepEqual(
    files.map(({ path }) => path),
    ['.gitignore', 'file', 'ignored'],
  )
})

test('a state that is kept already is named again', async () => {
  await using world = await createWorld({ isConfined: true })
  const first = await world.run('false && rm file; true')
  assert.equal(await world.run('false && rm file; true'), first)
})

for (const command of [
  'shopt -s extglob; rm !(none)',
  'x=rm; $x ignored',
  'bash <<E\nrm ignored\nE',
  `python3 -c "open('ignored', 'w')"`,
  'cat file | sort -o ignored',
  "printf 'clean:\\n\\trm ignored\\n' > Makefile; make clean",
  "echo 'rm ignored' | bash",
  'mv {file,ignored}',
  'git archive -o ignored HEAD 2>/dev/null || : > ignored',
])
  test(`ignored files come back after "${command}"`, async () => {
    await using world = await createWorld({ isConfined: true })
    await world.run(command).catch(() => '')
    const point = world.session.last('restore/point')
    const found = world.ctx.rewind.pointAt(world.session, point?.seq ?? 0)
    assert.ok(found)
    const paths = (await world.ctx.rewind.filesAt(found)).map(({ path }) => path)
    assert.ok(paths.includes('ignored'), paths.join(' '))
  })

test('what is outside is asked for with its reason where nothing confines', async () => {
  await using world = await createWorld({ answer: 'rejected', yes: false })
  assert.match(await world.run('rm ../outside'), /^Error: the user rejected this call/)
  assert.equal(world.asked.length, 1)
  assert.match(
    world.asked[0] ?? '',
    /it would destroy what lies outside of the workspace, where no restore point is taken: \S+\/outside/,
  )
  assert.ok(existsSync(join(world.base, 'outside')))
})

test('what a person allowed runs, and its result says what is not kept', async () => {
  await using world = await createWorld({ answer: 'allowed-once' })
  const text = await world.run('rm ../outside')
  assert.ok(!existsSync(join(world.base, 'outside')))
  assert.match(text, /^\n\[not kept: it would destroy what lies outside of the workspace, [^\n]*outside\]$/)
})

test('in full-access mode a person who is there is asked, else the result tells', async () => {
  await using there = await createWorld({ mode: 'full-access', answer: 'rejected' })
  assert.match(await there.run('rm ../outside'), /rejected/)
  assert.equal(await there.run('echo x'), 'x\n')
  assert.equal(there.asked.length, 1)
  await using alone = await createWorld({ mode: 'full-access' })
  assert.match(await alone.run('rm ../outside'), /^\n\[not kept: /)
})

test('without restore points a command that destroys is asked for in every mode but full access alone', async () => {
  await using confined = await createWorld({ isConfined: true, hasRewind: false })
  const refused = await confined.run('rm file')
  assert.match(
    refused,
    /it would destroy files, and no restore point can be taken: nothing here takes them; a person has to allow this call$/,
  )
  assert.ok(confined.has('file'))
  assert.equal(await confined.run('echo x'), 'x\n')
  await using asking = await createWorld({ isConfined: true, hasRewind: false, answer: 'allowed-once' })
  assert.match(
    await asking.run('rm file'),
    /^\n\[not kept: it would destroy files, and no restore point can be taken: nothing here takes them\]$/,
  )
  await using yes = await createWorld({ isConfined: true, hasRewind: false, yes: true })
  assert.match(await yes.run('rm file'), /nothing here takes them; a person has to allow this call$/)
  assert.ok(yes.has('file'))
})

test('words that only the shell knows are kept for, and said to be open', async () => {
  await using world = await createWorld({ answer: 'allowed-once' })
  const text = await world.run('x=file; rm "$x"')
  assert.equal(
    text,
    kept(world.session.last('restore/point')?.seq, '; nothing outside of the workspace is kept'),
  )
})

test('large ignored things are left out, and named', async () => {
  await using world = await createWorld({ isConfined: true })
  writeFileSync(join(world.work, 'ignored'), Buffer.alloc(2 * 1024 * 1024))
  const text = await world.run('rm file')
  assert.match(text, /; it is without ignored \(ignored\)\]$/)
})

test('what destroys nothing, and other tools, are left alone', async () => {
  await using world = await createWorld({ isConfined: true })
  assert.equal(await world.run('ls file'), 'file\n')
  assert.equal(await world.run('rm -f none'), '')
  assert.equal(world.session.last('restore/point')?.data.by, undefined)
})

test('when the plugin goes, nothing is said and asked any more', async () => {
  await using world = await createWorld({ isConfined: true, hasRewind: false })
  await world.fiber.dispose()
  assert.equal(await world.run('rm file'), '')
})
