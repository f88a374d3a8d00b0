import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { text, toolCall, toolCalls } from '@dsh/harness/plugins/llm-scripted'
import { say } from '@dsh/harness/testing'
import { openPlace, pointsOf, pointTaken, seqOf, treeOf } from './rewind-place.ts'
import type { Place } from './rewind-place.ts'

type Session = Place['agent']['session']

async function previewOf({ ctx }: Place, session: Session, seq: number) {
  const { files } = await ctx.rewind.preview(session, seq, { scope: 'files' })
  return files.map(({ path, status }) => [path, status])
}

test("what the user does while a request is answered is the user's: kept, named, and brought again", async t => {
  const place = await openPlace(t)
  const { ctx, turnAmid, at, workspace } = place
  const { session } = place.agent
  await writeFile(at('mine'), 'old')
  await writeFile(at('both'), 'old')
  await mkdir(at('empty'))
  const users = async (): Promise<void> => {
    await pointTaken(ctx, session, ({ data }) => data.step === 1)
    await writeFile(at('mine'), 'by hand')
    await writeFile(at('both'), 'by hand')
    await writeFile(at('new'), 'by hand')
    await rm(at('made'))
    await chmod(at('mode'), 0o600)
    await mkdir(at('folder'))
    await rm(at('empty'), { recursive: true })
  }
  await turnAmid(
    { answering: async index => (index === 1 ? await users() : undefined) },
    async () => {
      await writeFile(at('one'), '1')
      await writeFile(at('made'), '1')
      await writeFile(at('mode'), '1')
      await writeFile(at('both'), 'step')
    },
    () => writeFile(at('two'), '2'),
  )
  const list = ctx.rewind.list(session).map(({ kind, files }) => [kind, files])
  assert.deepEqual(list, [
    ['user', 5],
    ['tool', 4],
    ['tool', 1],
  ])
  const [, step, user] = pointsOf(session).map(({ data }) => data)
  assert.deepEqual([step?.by, step?.step, user?.by, user?.step], [undefined, 1, 'user', undefined])
  assert.deepEqual(
    user?.changed?.map(({ path, status }) => [path, status]),
    [
      ['both', 'modified'],
      ['made', 'deleted'],
      ['mine', 'modified'],
      ['new', 'added'],
    ],
  )
  const second = seqOf(session, 'tool/call', 1)
  assert.deepEqual(await previewOf(place, session, second), [
    ['both', 'conflict'],
    ['made', 'conflict'],
    ['mine', 'conflict'],
    ['mode', 'conflict'],
    ['new', 'conflict'],
    ['two', 'delete'],
  ])
  const before = treeOf(workspace)
  const prompt = seqOf(session, 'user/message')
  const result = await ctx.rewind.apply(session, prompt, { scope: 'files' })
  assert.deepEqual(
    result.kept.map(({ path }) => path),
    ['both', 'mine', 'mode', 'new'],
  )
  assert.deepEqual(treeOf(workspace), {
    both: '644 by hand',
    folder: 'folder',
    mine: '644 by hand',
    mode: '600 1',
    new: '644 by hand',
  })
  await ctx.rewind.apply(session, 'undo')
  assert.deepEqual(treeOf(workspace), before)
  const overwrite = ['mine', 'new']
  await ctx.rewind.apply(session, prompt, { scope: 'files', overwrite })
  const { mine, new: other, both } = treeOf(workspace)
  assert.deepEqual([mine, other, both], ['644 old', undefined, '644 by hand'])
})

test("what the user writes before a request is answered is the user's, also where the session just wrote it", async t => {
  const place = await openPlace(t)
  const { turnAmid, at } = place
  const { session } = place.agent
  await writeFile(at('mine'), 'old')
  const users = async (): Promise<void> => {
    for (const name of ['mine', 'both', 'new']) await writeFile(at(name), 'by hand')
    await rm(at('made'))
  }
  await turnAmid(
    { asked: async index => (index === 1 ? await users() : undefined) },
    async () => {
      for (const name of ['one', 'made', 'both']) await writeFile(at(name), '1')
    },
    () => writeFile(at('two'), '2'),
  )
  assert.deepEqual(await previewOf(place, session, seqOf(session, 'user/message')), [
    ['both', 'conflict'],
    ['mine', 'conflict'],
    ['new', 'conflict'],
    ['one', 'delete'],
    ['two', 'delete'],
  ])
})

test("what the user writes while a second call of a step waits to be allowed is the user's", async t => {
  const place = await openPlace(t)
  const { ctx, adapter, agent, at, acts } = place
  const { session } = agent
  let calls = 0
  ctx.on('tools/pre-execute', async (_execution, next) => {
    if (++calls === 2) await writeFile(at('mine'), 'by hand')
    return next()
  })
  acts.push(
    () => writeFile(at('one'), '1'),
    () => writeFile(at('two'), '2'),
    () => writeFile(at('three'), '3'),
  )
  const call = { name: 'act', args: {} }
  adapter.push(toolCalls([call, call, call]))
  adapter.push(text('done'))
  agent.followup(say('go'))
  await agent.whenIdle()
  const points = pointsOf(session).map(({ data: { by, step, changed = [] } }) => [
    by ?? step,
    changed.map(({ path }) => path),
  ])
  assert.deepEqual(points, [
    [undefined, []],
    [1, ['one']],
    ['user', ['mine']],
    [1, ['three', 'two']],
  ])
  assert.deepEqual(await previewOf(place, session, seqOf(session, 'tool/call', 2)), [
    ['mine', 'conflict'],
    ['one', 'delete'],
    ['three', 'delete'],
    ['two', 'delete'],
  ])
})

test("what another session of the workspace changes between two steps is not the session's", async t => {
  const place = await openPlace(t)
  const { ctx, adapter, acts, agent, at, openAgent } = place
  await writeFile(at('shared'), 'old')
  const other = (await openAgent('s2')).agent
  acts.push(
    () => writeFile(at('mine'), '1'),
    () => writeFile(at('shared'), 'by the other'),
    () => writeFile(at('later'), '2'),
  )
  const [act, done] = [toolCall('act', {}), text('done')]
  const whileOtherRuns = async (): Promise<typeof act> => {
    other.followup(say('go'))
    await other.whenIdle()
    return act
  }
  adapter.push(act, whileOtherRuns, act, done, done)
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.deepEqual(await previewOf(place, agent.session, seqOf(agent.session, 'user/message')), [
    ['later', 'delete'],
    ['mine', 'delete'],
    ['shared', 'conflict'],
  ])
  assert.deepEqual(await previewOf(place, other.session, seqOf(other.session, 'user/message')), [
    ['later', 'conflict'],
    ['shared', 'restore'],
  ])
  const { kept } = await ctx.rewind.apply(agent.session, seqOf(agent.session, 'user/message'), {
    scope: 'files',
  })
  assert.deepEqual(kept, [{ path: 'shared', reason: 'changed-by-user' }])
  assert.equal(readFileSync(at('shared'), 'utf8'), 'by the other')
})

test('where the user changed nothing no point is taken before a call', async t => {
  const { adapter, agent, turn, acts } = await openPlace(t)
  const nothing = (): undefined => undefined
  await turn(nothing, nothing)
  acts.push(nothing, nothing)
  adapter.push(
    toolCalls([
      { name: 'act', args: {} },
      { name: 'act', args: {} },
    ]),
    toolCall('act', {}),
  )
  adapter.push(text('done'))
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.deepEqual(
    pointsOf(agent.session).map(({ data: { turn: of, by, step } }) => [of, by, step]),
    [
      [1, undefined, undefined],
      [2, undefined, undefined],
    ],
  )
})
