import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { SessionStore } from '../../core/session/index.ts'
import type { Session } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import { sessionProjections } from '../session-projections/index.ts'
import { storeJsonl } from '../store-jsonl/index.ts'
import { planRetention, retention } from './index.ts'
import type { RetentionLimits, StoredCandidate } from './index.ts'

const day = 86_400_000
const now = 100 * day

const stored = (id: string, ageDays: number, more: Partial<StoredCandidate> = {}): StoredCandidate => ({
  id: SessionId(id),
  updatedAt: now - ageDays * day,
  bytes: 10,
  archived: false,
  inUse: false,
  ...more,
})

const plan = (candidates: StoredCandidate[], limits: RetentionLimits): string[] =>
  planRetention(candidates, limits, now).map(({ candidate, reason }) => `${candidate.id} ${reason}`)

test('what is too old goes, and what is in use stays however old', () => {
  const all = [stored('old', 31), stored('edge', 30), stored('new', 0), stored('used', 90, { inUse: true })]
  assert.deepEqual(plan(all, { maxAgeDays: 30 }), ['old age'])
})

test('of too many the archived go first, then the oldest', () => {
  const all = [
    stored('a', 1),
    stored('b', 2),
    stored('c', 3),
    stored('d', 0, { archived: true }),
    stored('e', 9, { inUse: true }),
  ]
  assert.deepEqual(plan(all, { maxSessions: 5 }), [])
  assert.deepEqual(plan(all, { maxSessions: 4 }), ['d count'])
  assert.deepEqual(plan(all, { maxSessions: 2 }), ['d count', 'c count', 'b count'])
  assert.deepEqual(plan(all, { maxBytes: 35 }), ['d bytes', 'c bytes'])
  assert.deepEqual(plan(all, { maxAgeDays: 2, maxSessions: 3 }), ['c age', 'd count'])
})

test('without a limit everything stays', () => {
  assert.deepEqual(plan([stored('a', 9999, { archived: true, bytes: 1e12 })], {}), [])
})

async function setup(t: TestContext, limits: object) {
  const home = await mkdtemp(join(tmpdir(), 'dsh-retention-'))
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root: join(home, 'sessions') })
  await ctx.plugin(sessionProjections, { folder: join(home, 'cache') })
  const plugin = ctx.plugin(retention, limits)
  await plugin
  t.after(async () => {
    await ctx.dispose()
    await rm(home, { recursive: true, force: true })
  })
  const ids = async () => (await ctx.sessionPersistence.list()).map(({ id }) => id).toSorted()
  const files = () => readdir(join(home, 'cache'))
  return { ctx, plugin, ids, files }
}

/** A stored session that nobody has open. */
async function store(
  ctx: Context,
  id: string,
  act: (session: Session) => void = () => undefined,
): Promise<void> {
  await ctx.sessions.whileLive(ctx.sessions.prepare(SessionId(id)), session => {
    session.append('todo/write', { todos: [] })
    act(session)
  })
  await ctx.sessionPersistence.readFrom(SessionId(id), 0)
}

/** A turn of a session that is stored. */
async function endTurn(ctx: Context, session: Session): Promise<void> {
  session.append('turn/start', { turn: 1 })
  await ctx.sessions.flush(session)
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
}

test('after a turn what is over the limits is removed with all that is kept of it, and the live session stays', async t => {
  const { ctx, plugin, ids, files } = await setup(t, { maxSessions: 2 })
  const removed: unknown[] = []
  ctx.on('retention/removed', ({ id, reason }) => removed.push([id, reason]))
  await store(ctx, 'kept')
  await store(ctx, 'archived', session => session.append('session/archived', { archived: true }))
  await endTurn(ctx, ctx.sessions.create(SessionId('live')))
  await plugin.dispose()
  assert.deepEqual(removed, [['archived', 'count']])
  assert.deepEqual(await ids(), ['kept', 'live'])
  assert.ok((await files()).length <= 2)
})

test('it looks once a day', async t => {
  mock.timers.enable({ apis: ['Date'], now })
  t.after(() => mock.timers.reset())
  const { ctx, ids } = await setup(t, { maxSessions: 1 })
  const live = ctx.sessions.create(SessionId('live'))
  const removal = (): Promise<unknown> => new Promise(resolve => ctx.once('retention/removed', resolve))
  await store(ctx, 'a')
  let next = removal()
  await endTurn(ctx, live)
  await next
  await store(ctx, 'b')
  await endTurn(ctx, live)
  mock.timers.setTime(now + day)
  assert.deepEqual(await ids(), ['b', 'live'])
  next = removal()
  await endTurn(ctx, live)
  await next
  assert.deepEqual(await ids(), ['live'])
})

test('without a limit it does not even listen', async t => {
  const { ctx, ids } = await setup(t, {})
  await store(ctx, 'a', session => session.append('session/archived', { archived: true }))
  await endTurn(ctx, ctx.sessions.create(SessionId('live')))
  await ctx.sessions.flush(ctx.sessions.get(SessionId('live')) as Session)
  assert.deepEqual(await ids(), ['a', 'live'])
})
