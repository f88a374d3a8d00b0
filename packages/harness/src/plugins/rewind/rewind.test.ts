import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEventMap } from '@dsh/protocol'
import { createHarness } from '../../testing/index.ts'
import { callFact, userFact } from '../../testing/given.ts'
import { rewind } from './index.ts'

const commit = (letter: string): string => letter.repeat(40)

function point(facts: Partial<SessionEventMap['restore/point']>): SessionEventMap['restore/point'] {
  return { turn: 1, after: 0, commit: commit('a'), files: 0, insertions: 0, deletions: 0, ...facts }
}

async function setup(t: { after(end: () => Promise<void>): void }) {
  const home = await mkdtemp(join(tmpdir(), 'rewind-home-'))
  t.after(() => rm(home, { recursive: true, force: true }))
  const harness = await createHarness()
  t.after(() => harness.ctx.dispose())
  const fiber = harness.ctx.plugin(rewind, { home })
  await fiber
  const session = harness.ctx.sessions.create(SessionId('s'), { meta: { cwd: home } })
  return { ...harness, home, fiber, session }
}

test('a row is a prompt with all that its turn changed, or a call with its step', async t => {
  const { ctx, session } = await setup(t)
  session.append('turn/start', { turn: 1 })
  session.append('step/start', { turn: 1, step: 1 })
  session.append('user/message', userFact('make it'), { surfaceOp: 'append' })
  session.append('restore/point', point({}))
  const { callId } = session.append('tool/call', callFact('c')).data
  const changed = [{ path: 'a', status: 'added' }] as const
  session.append('step/end', { turn: 1, step: 1 })
  session.append(
    'restore/point',
    point({ step: 1, callId, after: 5, commit: commit('b'), files: 1, insertions: 2, changed }),
  )
  session.append(
    'restore/point',
    point({ step: 2, callId, after: 5, commit: commit('c'), files: 1, deletions: 1, changed }),
  )
  assert.deepEqual(
    ctx.rewind
      .list(session)
      .map(({ seq, kind, text, files, insertions, deletions }) => [
        seq,
        kind,
        text,
        files,
        insertions,
        deletions,
      ]),
    [
      [2, 'user', 'make it', 1, 2, 1],
      [4, 'tool', 'tool', 1, 2, 0],
      [4, 'tool', 'tool', 1, 0, 1],
    ],
  )
})

test('what the user changed within a turn is a point of its own, and nothing that the turn did', async t => {
  const { ctx, session } = await setup(t)
  session.append('turn/start', { turn: 1 })
  session.append('step/start', { turn: 1, step: 1 })
  session.append('user/message', userFact('make it'), { surfaceOp: 'append' })
  session.append('restore/point', point({}))
  const changed = [{ path: 'mine', status: 'added' }] as const
  const users = { by: 'user', files: 1, insertions: 2, changed } as const
  session.append('restore/point', point({ ...users, after: 3, commit: commit('b') }))
  const rows = ctx.rewind.list(session).map(row => [row.kind, row.files, row.point?.commit])
  assert.deepEqual(rows, [['user', 0, commit('a')]])
  assert.deepEqual(
    [2, 3].map(seq => ctx.rewind.pointAt(session, seq)?.kind),
    ['turn', 'user'],
  )
})

test('the point of an event is the newest of a state that is no later, wherever in the log it stands', async t => {
  const { ctx, session } = await setup(t)
  session.append('turn/start', { turn: 1 })
  session.append('step/start', { turn: 1, step: 1 })
  session.append('step/end', { turn: 1, step: 1 })
  session.append('restore/point', point({ commit: commit('a') }))
  session.append('restore/point', point({ step: 1, after: 2, commit: commit('b') }))
  const commits = [-1, 0, 1, 2, 99].map(seq => ctx.rewind.pointAt(session, seq)?.commit[0])
  assert.deepEqual(commits, [undefined, 'a', 'a', 'b', 'b'])
})

test('an event that could not be used is refused when it is written', async t => {
  const { session } = await setup(t)
  const wrong: readonly Partial<SessionEventMap['restore/point']>[] = [
    { commit: '--upload-pack=x' },
    { after: -1 },
    { turn: 0 },
    { changed: [{}] as never },
    { by: 'me' as never },
    { by: 'user', step: 1 },
  ]
  for (const facts of wrong)
    assert.throws(() => session.append('restore/point', point(facts)), { code: 'INVALID_EVENT' })
  const place = { session: SessionId('s'), seq: -1 }
  const applied = { scope: 'files', from: place, to: place, files: [], written: 0, kept: [] } as const
  assert.equal(session.append('rewind/applied', applied).ignorable, true)
  for (const facts of [{ scope: 'all' }, { to: { ...place, seq: -2 } }, { backup: 'HEAD' }])
    assert.throws(() => session.append('rewind/applied', { ...applied, ...facts } as never), {
      code: 'INVALID_EVENT',
    })
})

test('without a point there is no way back for files, and a mount touches nothing', async t => {
  const { ctx, home, session } = await setup(t)
  session.append('turn/start', { turn: 1 })
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  await assert.rejects(ctx.rewind.preview(session, 0), { code: 'REWIND_NO_POINT' })
  await assert.rejects(ctx.rewind.preview(session, 'undo'), { code: 'REWIND_NOTHING_TO_UNDO' })
  assert.deepEqual(ctx.rewind.list(session), [])
  assert.ok(!existsSync(join(home, 'restore')))
})

test('when the plugin goes, its service, its events and what it does around calls go too', async t => {
  const { ctx, fiber, session } = await setup(t)
  assert.match(JSON.stringify(ctx.inspect()), /on tools\/execute/)
  await fiber.dispose()
  assert.equal(ctx.get('rewind'), undefined)
  // Nobody checks the type any more.
  session.append('restore/point', point({ commit: 'unchecked' }))
  assert.doesNotMatch(JSON.stringify(ctx.inspect()), /on tools\/execute/)
})
