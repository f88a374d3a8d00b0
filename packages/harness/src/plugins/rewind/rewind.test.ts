import assert from 'node:assert/strict'
import { lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { text, toolCall } from '../llm-scripted/index.ts'
import { storeJsonl } from '../store-jsonl/index.ts'
import { rewind } from './index.ts'
import type { RewindConfig, RewindNotice } from './index.ts'

type Act = () => unknown

/** An agent in a workspace of its own, whose tool `act` does the next thing it is given. */
async function setup(t: TestContext, options: Partial<RewindConfig> = {}) {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'rewind-')))
  t.after(() => rm(base, { recursive: true, force: true }))
  const [home, workspace] = [join(base, 'home'), join(base, 'work')]
  await mkdir(workspace)
  const harness = await createHarness()
  const { ctx, adapter } = harness
  const notices: RewindNotice[] = []
  ctx.on('rewind/notice', notice => void notices.push(notice))
  await ctx.plugin(storeJsonl, { root: join(home, 'sessions') })
  await ctx.plugin(rewind, { home, ...options })
  t.after(() => ctx.dispose())
  const acts: Act[] = []
  ctx.tools.register(
    defineTool({
      name: 'act',
      description: 'acts',
      parameters: {},
      execute: async () => String((await acts.shift()?.()) ?? ''),
    }),
  )
  const { agent } = await ctx.agents.create({
    sessionId: SessionId('s1'),
    meta: { cwd: workspace },
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  /** One turn in which each act is a step. */
  const turn = async (...given: readonly Act[]): Promise<void> => {
    acts.push(...given)
    for (const _ of given) adapter.push(toolCall('act', {}))
    adapter.push(text('done'))
    agent.followup(say('go'))
    await agent.whenIdle()
  }
  const at = (path: string): string => join(workspace, path)
  return { ...harness, home, workspace, agent, turn, at, notices, acts }
}

/** Everything below a folder: kind, permission bits and content. */
function treeOf(folder: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'latin1' })) {
    const path = Buffer.from(`${folder}/${entry}`, 'latin1')
    const stats = lstatSync(path)
    const mode = (stats.mode & 0o7777).toString(8)
    if (stats.isDirectory()) found[entry] = 'folder'
    else if (stats.isSymbolicLink()) found[entry] = `link ${readlinkSync(path, 'latin1')}`
    else found[entry] = `${mode} ${readFileSync(path, 'latin1')}`
  }
  return found
}

function pointsOf({ session }: Agent): readonly SessionEvent<'restore/point'>[] {
  return session.events.flatMap(event => (event.type === 'restore/point' ? [event] : []))
}

function seqOf({ session }: Agent, type: SessionEvent['type'], index = 0): number {
  return session.events.filter(event => event.type === type)[index]?.seq ?? -1
}

test('a turn begins with a point, and each step that changed files ends with one', async t => {
  const { agent, turn, at } = await setup(t)
  await writeFile(at('a'), 'one\n')
  await turn(
    () => writeFile(at('a'), 'two\nthree\n'),
    () => undefined,
    () => rm(at('a')),
  )
  const points = pointsOf(agent).map(({ data }) => data)
  assert.deepEqual(
    points.map(({ turn: number, step, files, insertions, deletions, changed }) => [
      number,
      step,
      files,
      insertions,
      deletions,
      changed,
    ]),
    [
      [1, undefined, 0, 0, 0, undefined],
      [1, 1, 1, 2, 1, [{ path: 'a', status: 'modified' }]],
      [1, 3, 1, 0, 2, [{ path: 'a', status: 'deleted' }]],
    ],
  )
  assert.match(outline(agent.session.events), /te:completed$/)
})

test('files go back to how they were before a step, and an undo brings the later ones again', async t => {
  const { ctx, agent, turn, at, workspace } = await setup(t)
  await writeFile(at('a'), 'one')
  await mkdir(at('kept'))
  await turn(
    async () => {
      await writeFile(at('a'), 'two')
      await mkdir(at('new/deep'), { recursive: true })
      await writeFile(at('new/deep/b'), 'b')
      await chmod(at('new/deep/b'), 0o755)
    },
    async () => {
      await rm(at('a'))
      await symlink('new', at('link'))
    },
  )
  const after = treeOf(workspace)
  const { session } = agent
  const second = seqOf(agent, 'tool/call', 1)
  const preview = await ctx.rewind.preview(session, second, { scope: 'files' })
  assert.deepEqual(preview.files, [
    { path: 'a', status: 'recreate', insertions: 1, deletions: 0 },
    { path: 'link', status: 'delete', insertions: 0, deletions: 1 },
  ])
  assert.deepEqual(treeOf(workspace), after)
  const first = await ctx.rewind.apply(session, second, { scope: 'files' })
  assert.equal(first.session, session.id)
  assert.equal(readFileSync(at('a'), 'utf8'), 'two')
  await ctx.rewind.apply(session, seqOf(agent, 'user/message'), { scope: 'files' })
  assert.deepEqual(treeOf(workspace), { a: '644 one', kept: 'folder' })
  await ctx.rewind.apply(session, 'undo')
  assert.equal(treeOf(workspace)['new/deep/b'], '755 b')
  await ctx.rewind.apply(session, 'undo')
  assert.deepEqual(treeOf(workspace), { a: '644 one', kept: 'folder' })
})
