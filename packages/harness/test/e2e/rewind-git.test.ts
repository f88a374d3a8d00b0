import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { text, toolCall } from '@dsh/harness/plugins/llm-scripted'
import { say } from '@dsh/harness/testing'
import { defineTool } from '@dsh/harness/tools'
import { openPlace, pointsOf, seqOf, treeOf } from './rewind-place.ts'

const own = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'u',
  GIT_AUTHOR_EMAIL: 'u@localhost',
  GIT_COMMITTER_NAME: 'u',
  GIT_COMMITTER_EMAIL: 'u@localhost',
  GIT_EDITOR: 'true',
}

/** What the user types; a command that fails is part of some scenes. */
function userGit(cwd: string, ...args: readonly string[]): void {
  try {
    execFileSync('git', args, {
      cwd,
      env: { ...process.env, ...own },
      timeout: 10_000,
      killSignal: 'SIGKILL',
      stdio: 'ignore',
    })
  } catch (error) {
    assert.equal(typeof (error as { status: unknown }).status, 'number', `git ${args.join(' ')}`)
  }
}

/** The bytes of every file below, and when it was last written. */
function stateOf(folder: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(treeOf(folder)).map(([path, what]) => [
      path,
      what === 'folder'
        ? what
        : `${what} ${existsSync(join(folder, path)) ? statSync(join(folder, path)).mtimeMs : 0}`,
    ]),
  )
}

test("the user's own repository is not touched: index, rebase, hooks, filters and line ends are theirs", async t => {
  const { ctx, agent, turn, at, workspace } = await openPlace(t)
  const alarm = at('.git/alarm')
  userGit(workspace, 'init', '-q', '-b', 'main')
  await writeFile(at('a'), 'one\r\ntwo\n')
  await writeFile(
    at('.gitattributes'),
    '*.bin filter=lfs diff=lfs merge=lfs -text\n* text=auto eol=crlf ident\n',
  )
  await writeFile(at('big.bin'), 'x\r\n$Id$\n')
  userGit(workspace, 'add', '-A')
  userGit(workspace, 'commit', '-qm', 'base')
  userGit(workspace, 'checkout', '-qb', 'topic')
  await writeFile(at('a'), 'topic\n')
  userGit(workspace, 'commit', '-qam', 'topic')
  userGit(workspace, 'checkout', '-q', 'main')
  await writeFile(at('a'), 'main\n')
  userGit(workspace, 'commit', '-qam', 'main')
  userGit(workspace, 'rebase', 'topic')
  assert.ok(existsSync(at('.git/rebase-merge')), 'a rebase is under way')
  await writeFile(at('staged'), 'staged\n')
  userGit(workspace, 'add', 'staged')
  for (const hook of [
    'post-index-change',
    'pre-commit',
    'reference-transaction',
    'post-checkout',
    'fsmonitor',
  ])
    await writeFile(at(`.git/hooks/${hook}`), `#!/bin/sh\necho ${hook} >> '${alarm}'\n`, { mode: 0o755 })
  for (const [key, value] of [
    ['core.autocrlf', 'true'],
    ['core.fsmonitor', at('.git/hooks/fsmonitor')],
    ['filter.lfs.clean', `sh -c 'echo clean >> ${alarm}; cat'`],
    ['filter.lfs.smudge', `sh -c 'echo smudge >> ${alarm}; cat'`],
    ['filter.lfs.required', 'true'],
    ['core.excludesFile', at('no-such-file')],
  ] as const)
    userGit(workspace, 'config', key, value)
  const theirs = stateOf(at('.git'))
  const before = treeOf(workspace)
  await turn(
    () => writeFile(at('a'), 'agent\r\n'),
    () => writeFile(at('big.bin'), 'agent'),
    () => rm(at('staged')),
  )
  await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), { scope: 'files' })
  assert.deepEqual(stateOf(at('.git')), theirs)
  assert.ok(!existsSync(alarm))
  assert.deepEqual(treeOf(workspace), before)
})

test('files of nested repositories and worktrees are covered, what is git there is not', async t => {
  const { ctx, agent, turn, at } = await openPlace(t)
  for (const folder of ['nested', 'vendor/deep']) {
    await mkdir(at(folder), { recursive: true })
    userGit(at(folder), 'init', '-q')
    await writeFile(at(`${folder}/f`), 'one')
  }
  await mkdir(at('tree'))
  await writeFile(at('tree/.git'), 'gitdir: ../nested/.git\n')
  await writeFile(at('tree/f'), 'one')
  userGit(at('.'), 'init', '-q', '--bare', 'store.git')
  const theirs = [stateOf(at('nested/.git')), stateOf(at('store.git'))]
  await turn(
    () => writeFile(at('nested/f'), 'two'),
    () => rm(at('vendor/deep/f')),
    () => writeFile(at('tree/f'), 'two'),
  )
  const [first] = pointsOf(agent.session)
  assert.deepEqual(first?.data.skipped, { special: ['store.git'] })
  await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), { scope: 'files' })
  for (const path of ['nested/f', 'vendor/deep/f', 'tree/f'])
    assert.equal(readFileSync(at(path), 'utf8'), 'one', path)
  assert.equal(readFileSync(at('tree/.git'), 'utf8'), 'gitdir: ../nested/.git\n')
  assert.deepEqual([stateOf(at('nested/.git')), stateOf(at('store.git'))], theirs)
})

test('ignore rules count in a folder that is no repository, and a file that was kept once stays kept', async t => {
  const { ctx, agent, turn, at } = await openPlace(t)
  await mkdir(at('node_modules/x'), { recursive: true })
  await writeFile(at('node_modules/x/i.js'), '1')
  await writeFile(at('.gitignore'), 'node_modules/\n*.log\n!keep.log\n')
  await writeFile(at('o.log'), '1')
  await writeFile(at('keep.log'), '1')
  await writeFile(at('.env'), 'A=1')
  await turn(
    () => writeFile(at('.gitignore'), '*.log\n.env\nnode_modules/\n'),
    () => writeFile(at('.env'), 'A=2'),
    () => rm(at('node_modules'), { recursive: true }),
  )
  const [first] = pointsOf(agent.session)
  assert.ok(first !== undefined)
  assert.deepEqual(first.data.skipped, { ignored: 2 })
  const point = ctx.rewind.pointAt(agent.session, first.seq)
  assert.ok(point !== undefined)
  const files = await ctx.rewind.filesAt(point)
  assert.deepEqual(
    files.map(({ path, mode, kind }) => [path, mode, kind]),
    ['.env', '.gitignore', 'keep.log'].map(path => [path, 0o644, 'file']),
  )
  assert.equal(String(Buffer.from((await ctx.rewind.read(point, '.env')) ?? [])), 'A=1')
  await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), { scope: 'files' })
  assert.equal(readFileSync(at('.env'), 'utf8'), 'A=1')
  assert.equal(readFileSync(at('o.log'), 'utf8'), '1')
  assert.ok(!existsSync(at('node_modules')))
})

test('names that are no text, odd modes and what cannot be kept are kept, or named', async t => {
  const { ctx, agent, turn, at, workspace } = await openPlace(t, { maxFileBytes: 10 })
  const bytes = (name: string): Buffer => Buffer.from(`${workspace}/${name}`, 'latin1')
  await writeFile(bytes('\xff\xfe'), 'bytes')
  await writeFile(at('line\nbreak "q"'), 'n')
  await writeFile(at('Case'), '1')
  await writeFile(at('case'), '2')
  await writeFile(at('secret'), 's', { mode: 0o600 })
  await writeFile(at('large'), 'more than ten')
  execFileSync('mkfifo', [at('pipe')])
  await mkdir(at('.GIT'))
  const before = treeOf(workspace)
  await turn(
    () => rm(bytes('\xff\xfe')),
    () => rm(at('line\nbreak "q"')),
    () => writeFile(at('Case'), '3'),
    () => rm(at('case')),
    () => rm(at('secret')),
    () => chmod(at('Case'), 0o751),
  )
  const [first, second] = pointsOf(agent.session)
  assert.deepEqual(first?.data.skipped, { tooLarge: ['large'], special: ['pipe'] })
  assert.deepEqual(second?.data.changed, [{ path: '"\\377\\376"', status: 'deleted' }])
  await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), { scope: 'files' })
  assert.deepEqual(treeOf(workspace), before)
})

/** A folder for PATH whose git is the given shell script, or missing. */
async function pathWith(t: TestContext, script: string | undefined): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rewind-path-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  if (script !== undefined) await writeFile(join(folder, 'git'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return folder
}

const cases: readonly (readonly [what: string, script: string | undefined, reason: RegExp])[] = [
  ['is not there', undefined, /: the program git is not there$/],
  [
    'is too old',
    'echo "fatal: unknown option" >&2; exit 129',
    /: git init ended with 129: fatal: unknown option$/,
  ],
  ['hangs', '/bin/sleep 5; true', /: git init was ended by SIGKILL$/],
]

for (const [what, script, reason] of cases)
  test(`where git ${what}, the turns go on without points, and one notice says so`, async t => {
    const env = { PATH: await pathWith(t, script) }
    const { ctx, agent, turn, at, notices } = await openPlace(t, { env, maxMs: 1000 })
    await turn(
      () => writeFile(at('a'), '1'),
      () => writeFile(at('a'), '2'),
    )
    await turn(() => writeFile(at('a'), '3'))
    assert.equal(readFileSync(at('a'), 'utf8'), '3')
    assert.deepEqual(
      notices.map(({ code }) => code),
      ['REWIND_OFF'],
    )
    assert.match(notices[0]?.message ?? '', reason)
    assert.deepEqual(pointsOf(agent.session), [])
    const prompt = seqOf(agent.session, 'user/message', 1)
    await assert.rejects(ctx.rewind.apply(agent.session, prompt), { code: 'REWIND_NO_POINT' })
    const { session } = await ctx.rewind.apply(agent.session, prompt, { scope: 'conversation' })
    const child = await ctx.sessionPersistence.view(session)
    assert.deepEqual(child.messages, agent.session.messages.slice(0, child.messages.length))
    assert.ok(child.messages.length > 0)
  })

test('a request is out before a point is begun, and a call that only reads waits for none', async t => {
  const env = { PATH: await pathWith(t, 'exec /bin/sleep 60') }
  const { ctx, adapter, agent, at, home, notices } = await openPlace(t, { env, maxMs: 500 })
  const seen: unknown[] = []
  ctx.tools.register(
    defineTool({
      name: 'look',
      description: 'looks',
      parameters: {},
      isConcurrencySafe: () => true,
      execute: () => {
        seen.push(['look', notices.length])
        return 'seen'
      },
    }),
  )
  ctx.tools.register(
    defineTool({
      name: 'change',
      description: 'changes',
      parameters: {},
      execute: async () => {
        seen.push(['change', notices.length])
        await writeFile(at('a'), '1')
        return 'done'
      },
    }),
  )
  adapter.push(
    () => {
      seen.push(['request', existsSync(join(home, 'restore'))])
      return toolCall('look', {})
    },
    toolCall('change', {}),
    text('done'),
  )
  agent.followup(say('go'))
  await agent.whenIdle()
  // The notice comes when the point has been given up: only what waited for it knows it.
  assert.deepEqual(seen, [
    ['request', false],
    ['look', 0],
    ['change', 1],
  ])
})

test('a turn that changes nothing is not held up by its point, nor is the end of the program', async t => {
  const env = { PATH: await pathWith(t, 'exec /bin/sleep 60') }
  const { ctx, agent, turn, notices } = await openPlace(t, { env, maxMs: 60_000 })
  await turn()
  await ctx.dispose()
  assert.deepEqual([pointsOf(agent.session), notices], [[], []])
})

test('a workspace that is too large, or a home that takes nothing, has no points and one notice', async t => {
  const large = await openPlace(t, { maxFiles: 2 })
  for (const name of ['a', 'b', 'c']) await writeFile(large.at(name), '1')
  await large.turn(() => writeFile(large.at('d'), '1'))
  assert.match(large.notices[0]?.message ?? '', /has more than 2 files$/)
  const blocked = await openPlace(t)
  await mkdir(blocked.home, { recursive: true })
  await writeFile(join(blocked.home, 'restore'), 'a file')
  await blocked.turn(
    () => writeFile(blocked.at('d'), '1'),
    () => writeFile(blocked.at('d'), '2'),
  )
  assert.deepEqual([large.notices.length, blocked.notices.length], [1, 1])
  assert.equal(readFileSync(blocked.at('d'), 'utf8'), '2')
})
