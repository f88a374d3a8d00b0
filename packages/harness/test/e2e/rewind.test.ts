import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { appendFile, chmod, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { fs } from '@dsh/harness/plugins/fs'
import { text, toolCall } from '@dsh/harness/plugins/llm-scripted'
import type { ScriptEntry } from '@dsh/harness/plugins/llm-scripted'
import { outline, say } from '@dsh/harness/testing'
import { openPlace, pointsOf, seqOf, treeOf } from './rewind-place.ts'

function sh(command: string, cwd: string): void {
  execFileSync('bash', ['-c', command], { cwd, timeout: 10_000, killSignal: 'SIGKILL' })
}

test('a turn begins with a point, and each step that changed files ends with one', async t => {
  const { agent, turn, at } = await openPlace(t)
  await writeFile(at('a'), 'one\n')
  await turn(
    () => writeFile(at('a'), 'two\nthree\n'),
    () => undefined,
    () => rm(at('a')),
  )
  const points = pointsOf(agent.session).map(({ data }) => data)
  assert.deepEqual(
    points.map(point => [
      point.turn,
      point.step,
      point.files,
      point.insertions,
      point.deletions,
      point.changed,
    ]),
    [
      [1, undefined, 0, 0, 0, undefined],
      [1, 1, 1, 2, 1, [{ path: 'a', status: 'modified' }]],
      [1, 3, 1, 0, 2, [{ path: 'a', status: 'deleted' }]],
    ],
  )
  assert.match(outline(agent.session.events), /te:completed$/)
})

test('only the user can read what is kept', async t => {
  const { turn, at, home } = await openPlace(t)
  await turn(() => writeFile(at('a'), '1'))
  const found = readdirSync(join(home, 'restore'), { recursive: true, encoding: 'utf8' })
  assert.ok(found.length > 10)
  for (const path of ['', ...found])
    assert.equal(lstatSync(join(home, 'restore', path)).mode & 0o077, 0, path)
})

test('files go back to how they were before a step, and an undo brings the later ones again', async t => {
  const { ctx, agent, turn, at, workspace } = await openPlace(t)
  const { session } = agent
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
  const second = seqOf(session, 'tool/call', 1)
  const preview = await ctx.rewind.preview(session, second, { scope: 'files' })
  assert.deepEqual(preview.files, [
    { path: 'a', status: 'recreate', insertions: 1, deletions: 0 },
    { path: 'link', status: 'delete', insertions: 0, deletions: 1 },
  ])
  assert.deepEqual(treeOf(workspace), after)
  const first = await ctx.rewind.apply(session, second, { scope: 'files' })
  assert.equal(first.session, session.id)
  assert.equal(readFileSync(at('a'), 'utf8'), 'two')
  const beforeAll = { a: '644 one', kept: 'folder' }
  await ctx.rewind.apply(session, seqOf(session, 'user/message'), { scope: 'files' })
  assert.deepEqual(treeOf(workspace), beforeAll)
  await ctx.rewind.apply(session, 'undo')
  assert.equal(treeOf(workspace)['new/deep/b'], '755 b')
  await ctx.rewind.apply(session, 'undo')
  assert.deepEqual(treeOf(workspace), beforeAll)
})

test('shell changes come back, a hand edit and large files are kept and named, and the history goes on', async t => {
  const { ctx, agent, turn, turnOf, at, workspace, resumeAgent } = await openPlace(t, {
    maxFileBytes: 6_000_000,
  })
  const { session } = agent
  await writeFile(at('A'), 'a1\n')
  await writeFile(at('B'), 'b1\n')
  await writeFile(at('C'), 'c1\n')
  await writeFile(at('five'), Buffer.alloc(5_000_000, 1))
  await symlink('A', at('link'))
  await turn(
    () => writeFile(at('A'), 'a2\n'),
    () =>
      sh(
        'echo b2 > B; rm C; mkdir -p out; echo x > out/x; ln -sfn B link; truncate -s 7000000 seven; printf 2 >> five',
        workspace,
      ),
  )
  await appendFile(at('A'), 'by hand\n')
  const prompt = seqOf(session, 'user/message')
  const preview = await ctx.rewind.preview(session, prompt)
  assert.deepEqual(
    preview.files.map(({ path, status, reason }) => [path, status, reason]),
    [
      ['A', 'conflict', 'changed-by-user'],
      ['B', 'restore', undefined],
      ['C', 'recreate', undefined],
      ['five', 'restore', undefined],
      ['link', 'restore', undefined],
      ['out/x', 'delete', undefined],
      ['seven', 'unknown', 'not-in-point'],
    ],
  )
  const result = await ctx.rewind.apply(session, prompt, { childId: SessionId('child') })
  assert.deepEqual(result.kept, [
    { path: 'A', reason: 'changed-by-user' },
    { path: 'seven', reason: 'not-in-point' },
  ])
  const rewound = treeOf(workspace)
  assert.deepEqual(
    [rewound['A'], rewound['B'], rewound['C'], rewound['link'], rewound['out'], rewound['five']?.length],
    ['644 a2\nby hand\n', '644 b1\n', '644 c1\n', 'link A', undefined, 5_000_004],
  )
  const child = await resumeAgent('child')
  await turnOf(child.agent, () => writeFile(at('B'), 'b3\n'))
  assert.match(outline(child.agent.session.events), /rewind\/applied .*te:completed$/)
  assert.equal(child.agent.session.header.parentSession, session.id)
  await ctx.rewind.apply(child.agent.session, seqOf(child.agent.session, 'user/message'), { scope: 'files' })
  await ctx.rewind.apply(child.agent.session, 'undo')
  await ctx.rewind.apply(child.agent.session, 'undo')
  assert.equal(readFileSync(at('B'), 'utf8'), 'b1\n')
  await child.dispose()
  assert.equal(treeOf(workspace)['A'], '644 a2\nby hand\n')
})

test('a rewind of both is undone by going back to the files and the session of before', async t => {
  const { ctx, agent, turn, at, workspace } = await openPlace(t)
  await turn(() => writeFile(at('a'), '1'))
  await turn(() => writeFile(at('a'), '2'))
  const before = treeOf(workspace)
  const result = await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message', 1))
  assert.equal(readFileSync(at('a'), 'utf8'), '1')
  assert.notEqual(result.session, agent.session.id)
  const child = await ctx.sessionPersistence.view(result.session)
  assert.deepEqual(child.messages, agent.session.messages.slice(0, child.messages.length))
  const back = await ctx.rewind.apply(child, 'undo')
  assert.equal(back.session, agent.session.id)
  assert.deepEqual(treeOf(workspace), before)
})

test('a file that the user had before, left out by a rule that went since, is not taken for a new one', async t => {
  const { ctx, agent, turn, at } = await openPlace(t)
  await writeFile(at('.gitignore'), '*.secret\n')
  await writeFile(at('key.secret'), 'mine')
  await turn(() => writeFile(at('.gitignore'), '# none\n'))
  const { kept } = await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), {
    scope: 'files',
  })
  assert.deepEqual(kept, [{ path: 'key.secret', reason: 'not-in-point' }])
  assert.equal(readFileSync(at('key.secret'), 'utf8'), 'mine')
})

test('what the user changed between two turns is not undone, unless it is asked for by name', async t => {
  const { ctx, agent, turn, at } = await openPlace(t)
  await writeFile(at('notes'), 'mine 1')
  await turn(() => writeFile(at('a'), '1'))
  await writeFile(at('notes'), 'mine 2')
  await turn(() => writeFile(at('a'), '2'))
  const prompt = seqOf(agent.session, 'user/message')
  const first = await ctx.rewind.apply(agent.session, prompt, { scope: 'files' })
  assert.deepEqual(first.kept, [{ path: 'notes', reason: 'changed-by-user' }])
  const again = await ctx.rewind.preview(agent.session, prompt, { scope: 'files' })
  assert.deepEqual(
    again.files.map(({ path, status }) => [path, status]),
    [['notes', 'conflict']],
  )
  await ctx.rewind.apply(agent.session, prompt, { scope: 'files', overwrite: ['notes'] })
  assert.equal(readFileSync(at('notes'), 'utf8'), 'mine 1')
})

test('nothing is written or removed through a link that leads out of the workspace', async t => {
  const { ctx, agent, turn, at, base } = await openPlace(t)
  await mkdir(at('d'))
  await writeFile(at('d/f'), 'inside')
  await mkdir(`${base}/outside`)
  await writeFile(`${base}/outside/f`, 'outside')
  await turn(() => writeFile(at('d/f'), 'changed'))
  await rm(at('d'), { recursive: true })
  await symlink('../outside', at('d'))
  await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), {
    scope: 'files',
    overwrite: ['d/f'],
  })
  assert.equal(readFileSync(`${base}/outside/f`, 'utf8'), 'outside')
})

test('a turn that is cancelled in the middle of a call leaves a point of what it did', async t => {
  const { ctx, agent, turn, at } = await openPlace(t)
  await turn(async () => {
    await writeFile(at('a'), 'half')
    agent.cancel({ kind: 'user' })
  })
  const [, step] = pointsOf(agent.session)
  assert.deepEqual(step?.data.changed, [{ path: 'a', status: 'added' }])
  await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), { scope: 'files' })
  assert.throws(() => readFileSync(at('a')), { code: 'ENOENT' })
})

test('another program goes on where one left off, and sees what changed in between', async t => {
  const first = await openPlace(t)
  await writeFile(first.at('a'), '1')
  await first.turn(() => writeFile(first.at('b'), '1'))
  await first.ctx.dispose()
  const second = await openPlace(t, { base: first.base })
  await truncate(second.at('b'))
  await second.turn(() => writeFile(second.at('c'), '1'))
  const points = pointsOf(second.agent.session).map(({ data }) => [data.turn, data.step, data.changed])
  assert.deepEqual(points.slice(2), [
    [2, undefined, [{ path: 'b', status: 'modified' }]],
    [2, 1, [{ path: 'c', status: 'added' }]],
  ])
})

test('sessions of one workspace have points of their own, whatever the other does', async t => {
  const { ctx, agent, turn, turnOf, at, openAgent } = await openPlace(t)
  const { agent: other } = await openAgent('s2')
  await turn(() => writeFile(at('a'), 'first'))
  await turnOf(other, () => writeFile(at('b'), 'second'))
  await turn(() => writeFile(at('a'), 'third'))
  const { kept } = await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), {
    scope: 'files',
  })
  assert.deepEqual(kept, [{ path: 'b', reason: 'changed-by-user' }])
  await ctx.rewind.apply(other.session, seqOf(other.session, 'user/message'), { scope: 'files' })
  assert.throws(() => readFileSync(at('b')), { code: 'ENOENT' })
})

test('what was read before a fork may be edited in it; after a rewind it is read again first', async t => {
  const { ctx, adapter, agent, at, resumeAgent } = await openPlace(t)
  await ctx.plugin(fs)
  await writeFile(at('a'), 'one\n')
  const run = async (who: typeof agent, ...script: readonly ScriptEntry[]): Promise<void> => {
    adapter.push(...script, text('done'))
    who.followup(say('go'))
    await who.whenIdle()
  }
  const edit = (from: string, to: string): ScriptEntry =>
    toolCall('edit', { file_path: at('a'), old_string: from, new_string: to })
  await run(agent, toolCall('read', { file_path: at('a') }))
  const fork = await ctx.rewind.fork(agent.session)
  const child = await resumeAgent(fork)
  await run(child.agent, edit('one', 'two'))
  assert.equal(readFileSync(at('a'), 'utf8'), 'two\n')
  const { session } = await ctx.rewind.apply(
    child.agent.session,
    seqOf(child.agent.session, 'user/message', 1),
  )
  assert.equal(readFileSync(at('a'), 'utf8'), 'one\n')
  const again = await resumeAgent(session)
  await run(again.agent, edit('one', 'four'), toolCall('read', { file_path: at('a') }), edit('one', 'three'))
  assert.equal(readFileSync(at('a'), 'utf8'), 'three\n')
})
