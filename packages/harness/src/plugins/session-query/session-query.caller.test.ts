import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { createHarness } from '../../testing/harness.ts'
import { userFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { openLibrary } from './test-library.ts'

const prompt = (text: string): Draft => ['user/message', userFact(text)]
const onSurface = { surfaceOp: 'append' } as const
const denied = (id: string) => ({
  code: 'SESSION_QUERY_TOOL_UNAUTHORIZED',
  message: `session "${id}" is not there, or not in this folder`,
})

/** An agent in /srv/a or without a folder, beside stored sessions in /srv/a, /srv/a/ and /srv/b. */
async function setup(t: TestContext, cwd: string | undefined = '/srv/a') {
  const { ctx } = await createHarness()
  const library = await openLibrary(t, { ctx })
  const { put } = library
  await put('near', [prompt('pear near')], { cwd: '/srv/a', createdAt: 1 })
  await put('slash', [prompt('pear slash')], { cwd: '/srv/a/' })
  await put('far', [prompt('pear far')], { cwd: '/srv/b', parentSession: SessionId('near'), createdAt: 2 })
  await put('child', [prompt('pear child')], { cwd: '/srv/a', parentSession: SessionId('far'), createdAt: 3 })
  const { agent } = await ctx.agents.create({
    sessionId: SessionId('own'),
    meta: cwd === '' ? {} : { cwd },
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  return { ...library, agent, caller: ctx.sessionQuery.asCaller(agent) }
}

test('an agent finds what was said in its folder, and nowhere else', async t => {
  const { agent, caller } = await setup(t)
  agent.session.append('user/message', userFact('pear own'), onSurface)
  const { sessions } = await caller.searchSessions({ query: 'pear' })
  assert.deepEqual(
    sessions.map(({ record }) => record.id),
    ['near', 'child'],
  )
})

test('what is not there and what is not its to read look the same to an agent', async t => {
  const { caller } = await setup(t)
  for (const id of ['far', 'slash', 'none'].map(SessionId)) {
    await assert.rejects(caller.traceSession(id), denied(id))
    await assert.rejects(caller.traceEvent({ sessionId: id, seq: 0 }), denied(id))
    await assert.rejects(caller.readEvent({ sessionId: id, seq: 0 }), denied(id))
    await assert.rejects(caller.searchEvents({ sessionId: id, query: 'pear' }), denied(id))
    await assert.rejects(
      caller.searchSessions({ query: 'pear', sessions: [{ kind: 'parent', values: [id] }] }),
      denied(id),
    )
    const asked = await caller.searchSessions({ query: 'pear', sessions: [{ kind: 'id', values: [id] }] })
    assert.deepEqual([asked.sessions, asked.left], [[], []])
  }
  const near = await caller.readEvent({ sessionId: SessionId('near'), seq: 0 })
  assert.equal(near.target.event.seq, 0)
})

test('an agent without a folder sees itself alone', async t => {
  const { agent, caller } = await setup(t, '')
  await assert.rejects(caller.readEvent({ sessionId: SessionId('near'), seq: 0 }), denied('near'))
  assert.deepEqual((await caller.searchSessions({ query: 'pear' })).sessions, [])
  agent.session.append('user/message', userFact('own'), onSurface)
  assert.equal((await caller.readEvent({ sessionId: agent.id, seq: 0 })).target.event.seq, 0)
})

test('a line of sessions ends, without a name, where it leaves the folder', async t => {
  const { caller } = await setup(t)
  const child = await caller.traceSession(SessionId('child'))
  assert.deepEqual([child.ancestors, child.origin], [[], { complete: false, unresolvedParentId: '' }])
  const near = await caller.traceSession(SessionId('near'))
  assert.deepEqual([near.descendants, near.origin], [[], { complete: true, root: 'near' }])
})

test('in its own session an agent finds what came before the step that asks', async t => {
  const { agent, caller } = await setup(t)
  const { session } = agent
  const search = () => caller.searchEvents({ sessionId: session.id, query: 'pear' })
  await assert.rejects(search(), { code: 'SESSION_QUERY_TOOL_NO_CURRENT_STEP' })
  session.append('turn/start', { turn: 1 })
  session.append('user/message', userFact('pear before'), onSurface)
  session.append('step/start', { turn: 1, step: 1 })
  session.append('user/message', userFact('pear after'), onSurface)
  assert.deepEqual(
    (await search()).hits.map(({ seq }) => seq),
    [1],
  )
})
