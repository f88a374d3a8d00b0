import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { JsonValue, SessionEvent } from '@dsh/protocol'
import { SessionStore } from '../../core/session/index.ts'
import type { FoldDefinition } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import { say } from '../../testing/index.ts'
import { SessionProjections, sessionProjections } from './index.ts'
import type { ProjectionUnit } from './index.ts'

async function setup() {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const plugin = ctx.plugin(SessionProjections)
  await plugin
  const session = ctx.sessions.create(SessionId('s'))
  return { ctx, plugin, session, projections: ctx.sessionProjections }
}

const turns = (key = 'turns', stateVersion = 1): ProjectionUnit<number, 'turn/start'> => ({
  key,
  stateVersion,
  fold: { name: key, types: ['turn/start'], init: () => 0, apply: count => count + 1 },
  isState: (value): value is number => typeof value === 'number',
})

const prompts: ProjectionUnit<readonly string[], 'user/message'> = {
  key: 'prompts',
  stateVersion: 0,
  fold: {
    name: 'prompts',
    types: ['user/message'],
    init: () => [],
    apply: (state, event) => [...state, event.data.id],
  },
  isState: (value): value is readonly string[] => Array.isArray(value),
  view: state => ({ count: state.length }),
}

const broken: FoldDefinition<number, 'turn/end'> = {
  name: 'broken',
  types: ['turn/end'],
  init: () => 0,
  apply() {
    throw new Error('it cannot count')
  },
}

const isNumber = (value: unknown): value is number => typeof value === 'number'

test('an empty log has the first values, as of no event', async () => {
  const { projections, session } = await setup()
  projections.register(turns())
  assert.deepEqual(projections.snapshot(session), { asOfSeq: -1, values: { turns: 0 } })
  assert.deepEqual(projections.at(session, -1), { asOfSeq: -1, values: { turns: 0 } })
})

test('a value is shown through the view, and its state is there for those who know it', async () => {
  const { projections, session } = await setup()
  projections.register(prompts)
  const message = say('hello')
  session.append('turn/start', { turn: 1 })
  session.append('user/message', message, { surfaceOp: 'append' })
  assert.deepEqual(projections.snapshot(session), { asOfSeq: 1, values: { prompts: { count: 1 } } })
  assert.deepEqual(projections.stateOf(session, 'prompts'), [message.id])
  assert.equal(projections.stateOf(session, 'nobody'), undefined)
})

test('the values at an event are those of a log that ends with it, for every event', async () => {
  const { ctx, projections, session } = await setup()
  projections.register(turns())
  projections.register(prompts)
  for (let turn = 1; turn <= 25; turn++) {
    session.append('turn/start', { turn })
    if (turn % 3 > 0) session.append('user/message', say(`${turn}`), { surfaceOp: 'append' })
    session.append('turn/end', { turn, reason: { kind: 'completed' } })
  }
  for (let seq = -1; seq < session.length; seq++) {
    const cut = ctx.sessions.prepare(SessionId('s'), {
      seed: session.events.slice(0, seq + 1) as SessionEvent[],
      seedSource: 'persistence',
      meta: session.header,
    })
    assert.deepEqual(projections.at(session, seq), { ...projections.snapshot(cut), asOfSeq: seq })
  }
})

test('an event that the log does not have has no values', async () => {
  const { projections, session } = await setup()
  session.append('turn/start', { turn: 1 })
  for (const seq of [1, -2, 0.5, NaN]) {
    assert.throws(() => projections.at(session, seq), {
      name: 'RangeError',
      message: `session "s" has events 0 to 0, not ${seq}`,
    })
  }
})

test('a unit that fails is named and leaves the others alone', async () => {
  const { projections, session } = await setup()
  projections.register({ key: 'broken', stateVersion: 0, fold: broken, isState: isNumber })
  projections.register({ ...turns('odd'), view: () => undefined as unknown as JsonValue })
  projections.register(turns())
  session.append('turn/start', { turn: 1 })
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  assert.deepEqual(projections.snapshot(session), {
    asOfSeq: 1,
    values: { turns: 1 },
    problems: {
      broken: 'it cannot count',
      odd: 'projection "odd": view is undefined, which JSON does not keep',
    },
  })
  assert.throws(() => projections.stateOf(session, 'broken'), /it cannot count/)
})

test('a key stays until the last of those who registered it has gone', async () => {
  const { projections, session } = await setup()
  const unit = turns()
  const first = projections.register(unit)
  const second = projections.register(unit)
  first()
  first()
  assert.deepEqual(projections.snapshot(session).values, { turns: 0 })
  second()
  assert.deepEqual(projections.snapshot(session).values, {})
})

test('another version of a key is refused while the first is there', async () => {
  const { projections } = await setup()
  const drop = projections.register(turns('turns', 1))
  assert.throws(() => projections.register(turns('turns', 2)), {
    code: 'PROJECTION_CONFLICT',
    message: 'projection "turns": its state has version 1 already, not 2',
  })
  drop()
  projections.register(turns('turns', 2))
})

test('a unit without a key or a whole version is refused', async () => {
  const { projections } = await setup()
  assert.throws(() => projections.register(turns('')), { code: 'INVALID_PROJECTION' })
  assert.throws(() => projections.register(turns('a', 1.5)), {
    code: 'INVALID_PROJECTION',
    message: 'projection "a": stateVersion is 1.5, expected a whole number from 0',
  })
})

test('listeners hear of changes alone, in the order of the log, nested ones too', async () => {
  const { ctx, projections, session } = await setup()
  projections.register(turns())
  projections.register(prompts)
  const heard: unknown[] = []
  projections.onChanged(({ id }, key, value, seq) => heard.push([id, key, value, seq]))
  ctx.on('session/event', (_, { type }) => {
    if (type === 'turn/start') session.append('user/message', say('nested'), { surfaceOp: 'append' })
  })
  session.append('turn/start', { turn: 1 })
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  session.append('turn/start', { turn: 2 })
  assert.deepEqual(heard, [
    ['s', 'turns', 1, 0],
    ['s', 'prompts', { count: 1 }, 1],
    ['s', 'turns', 2, 3],
    ['s', 'prompts', { count: 2 }, 4],
  ])
})

test('a listener or a unit that throws keeps nobody else from hearing', async () => {
  const { ctx, projections, session } = await setup()
  projections.register({ key: 'broken', stateVersion: 0, fold: broken, isState: isNumber })
  projections.register(turns())
  const failures: string[] = []
  ctx.on('internal/error', error => failures.push(String(error)))
  const heard: JsonValue[] = []
  projections.onChanged(() => {
    throw new Error('deaf')
  })
  projections.onChanged((_, __, value) => heard.push(value))
  session.append('turn/start', { turn: 1 })
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  assert.deepEqual(heard, [1])
  assert.deepEqual(failures, ['Error: deaf', 'Error: it cannot count'])
})

test('what a plugin registered goes with it, and nobody listens to events any more', async () => {
  const { ctx, projections, session } = await setup()
  let heard = 0
  const plugin = ctx.plugin({
    name: 'watcher',
    inject: ['sessionProjections'],
    apply(own) {
      own.sessionProjections.register(turns())
      own.sessionProjections.onChanged(() => heard++)
    },
  })
  await plugin
  session.append('turn/start', { turn: 1 })
  await plugin.dispose()
  session.append('turn/start', { turn: 2 })
  assert.equal(heard, 1)
  assert.deepEqual(projections.snapshot(session).values, {})
})

test('the plugin brings the values of what the core writes, and they go with it', async () => {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const plugin = ctx.plugin(sessionProjections)
  await plugin
  const { values, problems } = ctx.sessionProjections.snapshot(ctx.sessions.create(SessionId('s')))
  assert.deepEqual(Object.keys(values), [
    'turn',
    'route',
    'permissions',
    'todo',
    'tokenUsage',
    'sessionStats',
    'sessionListMetadata',
  ])
  assert.equal(problems, undefined)
  await plugin.dispose()
  assert.equal(ctx.get('sessionProjections'), undefined)
})
