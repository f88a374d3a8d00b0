import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { logOf, userFact } from '../../testing/given.ts'
import { createScope } from '../scope/index.ts'
import { createPreparation, Session, SessionStore } from './index.ts'

async function setup(): Promise<{ ctx: Context; heard: string[]; errors: unknown[] }> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const heard: string[] = []
  const errors: unknown[] = []
  ctx.on('session/created', session => {
    heard.push(`created ${session.id}`)
  })
  ctx.on('session/event', (session, event) => {
    heard.push(`${event.type} ${session.id}`)
  })
  ctx.on('session/disposed', session => {
    heard.push(`disposed ${session.id}`)
  })
  ctx.on('internal/error', error => {
    errors.push(error)
  })
  return { ctx, heard, errors }
}

const s = SessionId('s')

test('a created session is live, heard of, and ends with the plugin that made it', async () => {
  const { ctx, heard } = await setup()
  const plugin = ctx.plugin(function maker(own: Context) {
    own.sessions.create(s, { meta: { cwd: '/work' } }).append('turn/start', { turn: 1 })
  })
  const session = ctx.sessions.get(s)
  assert.equal(session?.header.cwd, '/work')
  assert.deepEqual(ctx.sessions.list(), [session])
  await plugin.dispose()
  assert.equal(ctx.sessions.get(s), undefined)
  assert.deepEqual(heard, ['created s', 'turn/start s', 'disposed s'])
  session?.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  assert.equal(heard.length, 3)
})

test('sessions without an id are numbered, around those that are taken, and listed as they came', async () => {
  const { ctx } = await setup()
  ctx.sessions.create(SessionId('session-2'))
  const ids = [ctx.sessions.create(), ctx.sessions.create()].map(session => session.id)
  assert.deepEqual(ids, ['session-1', 'session-3'])
  assert.deepEqual(
    ctx.sessions.list().map(session => session.id),
    ['session-2', 'session-1', 'session-3'],
  )
  assert.throws(() => ctx.sessions.create(SessionId('session-1')), { code: 'SESSION_ALREADY_EXISTS' })
})

test('the mark at the end of a seed is in the log, and is told to nobody', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.create(s, { seed: logOf(['turn/start', { turn: 1 }]) })
  assert.deepEqual(
    session.events.map(event => event.type),
    ['turn/start', 'session/end-seed'],
  )
  assert.deepEqual(heard, ['created s'])
})

test('nobody hears of a session that is prepared, nor of one that enters and leaves without a word', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.prepare(s)
  assert.equal(ctx.sessions.get(s), undefined)
  const leave = ctx.sessions.enter(session)
  assert.equal(ctx.sessions.get(s), session)
  await assert.rejects(ctx.sessions.flush(session), { code: 'SESSION_NOT_LIVE' })
  leave()
  assert.equal(ctx.sessions.get(s), undefined)
  assert.deepEqual(heard, [])
})

test('a session is announced once', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.prepare(s)
  assert.throws(() => ctx.sessions.announce(session), /^TypeError: s has not entered/)
  ctx.sessions.enter(session)
  ctx.on('session/created', () => {
    assert.throws(() => ctx.sessions.announce(session), /^TypeError: s was announced before/)
  })
  ctx.sessions.announce(session)
  assert.throws(() => ctx.sessions.announce(session), /^TypeError: s was announced before/)
  assert.deepEqual(heard, ['created s'])
})

test('of two that were prepared under one id, the second to enter loses', async () => {
  const { ctx } = await setup()
  const [first, second] = [ctx.sessions.prepare(s), ctx.sessions.prepare(s)]
  ctx.sessions.enter(first)
  assert.throws(() => ctx.sessions.enter(second), { code: 'SESSION_ALREADY_EXISTS' })
  assert.equal(ctx.sessions.get(s), first)
})

test('a session is in one store at a time', async () => {
  const [one, other] = [await setup(), await setup()]
  const session = one.ctx.sessions.prepare(s)
  const leave = one.ctx.sessions.enter(session)
  assert.throws(() => other.ctx.sessions.enter(session), { code: 'SESSION_ALREADY_EXISTS' })
  assert.equal(other.ctx.sessions.get(s), undefined)
  leave()
  other.ctx.sessions.enter(session)
  session.append('turn/start', { turn: 1 })
  assert.deepEqual([one.heard, other.heard], [[], ['turn/start s']])
})

test('the end of a store is the end of all that live in it, the last first', async () => {
  const ctx = new Context()
  const store = ctx.plugin(SessionStore)
  await store
  const heard: string[] = []
  ctx.on('session/disposed', session => {
    heard.push(session.id)
  })
  const first = ctx.sessions.create(SessionId('first'))
  ctx.sessions.create(SessionId('second'))
  ctx.sessions.enter(ctx.sessions.prepare(SessionId('silent')))
  await store.dispose()
  assert.deepEqual(heard, ['second', 'first'])
  await ctx.plugin(SessionStore)
  ctx.sessions.enter(first)
  assert.equal(ctx.sessions.get(first.id), first)
})

test('leaving twice, or after the id was taken again, changes nothing', async () => {
  const { ctx, heard } = await setup()
  const old = ctx.sessions.prepare(s)
  const leave = ctx.sessions.enter(old)
  ctx.sessions.announce(old)
  leave()
  const fresh = ctx.sessions.create(s)
  leave()
  assert.equal(ctx.sessions.get(s), fresh)
  assert.deepEqual(heard, ['created s', 'disposed s', 'created s'])
})

test('a listener that throws refuses the session, and whoever heard of it hears of its end', async () => {
  const { ctx, heard } = await setup()
  const no = new Error('no')
  const off = ctx.on('session/created', () => {
    throw no
  })
  ctx.on('session/created', () => {
    heard.push('never')
  })
  assert.throws(() => ctx.sessions.create(s), no)
  assert.equal(ctx.sessions.get(s), undefined)
  assert.deepEqual(heard, ['created s', 'disposed s'])
  off()
  ctx.sessions.create(s)
})

test('a listener that rejects later refuses nothing', async () => {
  const { ctx, errors } = await setup()
  const late = new Error('late')
  ctx.on('session/created', (async () => Promise.reject(late)) as never)
  const session = ctx.sessions.create(s)
  await new Promise(setImmediate)
  assert.equal(ctx.sessions.get(s), session)
  assert.deepEqual(errors, [late])
})

test('a session that is to leave while it is announced leaves right after', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.prepare(s)
  const leave = ctx.sessions.enter(session)
  ctx.on('session/created', () => {
    leave()
    heard.push(`still ${String(ctx.sessions.get(s) === session)}`)
  })
  ctx.sessions.announce(session)
  assert.equal(ctx.sessions.get(s), undefined)
  assert.deepEqual(heard, ['created s', 'still true', 'disposed s'])
})

test('a session that is to leave while an event is told of leaves after everybody heard, nested events included', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.prepare(s)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  ctx.on('session/event', (_session, event) => {
    if (event.type !== 'turn/start') return
    leave()
    session.append('step/start', { turn: 1, step: 1 })
  })
  session.append('turn/start', { turn: 1 })
  assert.deepEqual(heard, ['created s', 'turn/start s', 'step/start s', 'disposed s'])
  assert.equal(ctx.sessions.get(s), undefined)
})

test('a check that lets the session go and refuses the event leaves it gone', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.prepare(s)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  ctx.on('internal/dispatch', (_mode, name) => {
    if (name !== 'session/event') return
    leave()
    throw new Error('no')
  })
  assert.throws(() => session.append('turn/start', { turn: 1 }), /no/)
  assert.equal(ctx.sessions.get(s), undefined)
  assert.deepEqual(heard, ['created s', 'disposed s'])
})

test('a check that lets the session go and admits the event leaves it until everybody heard', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.prepare(s)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  ctx.on('internal/dispatch', (_mode, name) => {
    if (name === 'session/event') leave()
  })
  session.append('turn/start', { turn: 1 })
  assert.deepEqual(heard, ['created s', 'turn/start s', 'disposed s'])
})

test('a chunk is told of like any event, and a session leaves after it', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.prepare(s)
  const leave = ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  ctx.on('session/event', () => leave())
  session.appendChunk(1, 1, { type: 'text-delta', index: 0, text: 'a' })
  assert.deepEqual(heard, ['created s', 'assistant/chunk s', 'disposed s'])
})

test('a session is known while somebody adds to it, stored, and gone again', async () => {
  const { ctx, heard } = await setup()
  ctx.on('session/flush', session => void heard.push(`stored ${session.length}`))
  await ctx.sessions.whileLive(ctx.sessions.prepare(s), session => {
    assert.equal(ctx.sessions.get(s), session)
    session.append('turn/start', { turn: 1 })
  })
  assert.equal(ctx.sessions.get(s), undefined)
  assert.deepEqual(heard, ['created s', 'turn/start s', 'stored 1', 'disposed s'])
})

test('a session that somebody else has live stays so, and is stored all the same', async () => {
  const { ctx, heard } = await setup()
  const session = ctx.sessions.create(s)
  ctx.on('session/flush', ({ length }) => void heard.push(`stored ${length}`))
  await ctx.sessions.whileLive(session, () => session.append('turn/start', { turn: 1 }))
  assert.equal(ctx.sessions.get(s), session)
  assert.deepEqual(heard, ['created s', 'turn/start s', 'stored 1'])
})

test('a session whose log is live as another object is not taken for it', async () => {
  const { ctx } = await setup()
  ctx.sessions.create(s)
  const other = ctx.sessions.prepare(s)
  await assert.rejects(
    ctx.sessions.whileLive(other, () => {}),
    { code: 'SESSION_ALREADY_EXISTS' },
  )
  assert.notEqual(ctx.sessions.get(s), other)
})

test('a session leaves where what was to be added, or to be stored, fails', async () => {
  const { ctx, heard } = await setup()
  const refused = new Error('no')
  const refuse = (): never => {
    throw refused
  }
  await assert.rejects(ctx.sessions.whileLive(ctx.sessions.prepare(s), refuse), refused)
  assert.deepEqual(heard.splice(0), ['created s', 'disposed s'])
  ctx.on('session/flush', refuse)
  await assert.rejects(
    ctx.sessions.whileLive(ctx.sessions.prepare(s), () => {}),
    refused,
  )
  assert.deepEqual(heard, ['created s', 'disposed s'])
})

test('flush waits for all, then fails with the first failure as it was', async () => {
  const { ctx } = await setup()
  const session = ctx.sessions.create(s)
  assert.equal(await ctx.sessions.flush(session), false)
  const done: string[] = []
  const slow = Promise.withResolvers<void>()
  const first = { reason: 'first' }
  ctx.on('session/flush', async () => {
    await slow.promise
    done.push('slow')
    throw first
  })
  ctx.on('session/flush', () => {
    done.push('quick')
    throw new Error('second')
  })
  const flushed = ctx.sessions.flush(session)
  await new Promise(setImmediate)
  assert.deepEqual(done, ['quick'])
  slow.resolve()
  await assert.rejects(flushed, error => error === first)
  assert.deepEqual(done, ['quick', 'slow'])
})

test('flush says whether anybody took part', async () => {
  const { ctx } = await setup()
  const session = ctx.sessions.create(s)
  ctx.on('session/flush', () => {})
  assert.equal(await ctx.sessions.flush(session), true)
})

test('a flush that is asked for by an observer covers the events that others have not heard of yet', async () => {
  const { ctx } = await setup()
  const session = ctx.sessions.create(s)
  const stored: number[] = []
  const flushes: Promise<boolean>[] = []
  let atFlush: number[] = []
  ctx.on('session/event', (_session, event) => {
    if (event.type !== 'turn/start') return
    session.append('step/start', { turn: 1, step: 1 })
    flushes.push(ctx.sessions.flush(session))
  })
  ctx.on('session/event', (_session, event) => {
    stored.push(event.seq)
  })
  ctx.on('session/flush', () => {
    atFlush = [...stored]
  })
  session.append('turn/start', { turn: 1 })
  assert.deepEqual(await Promise.all(flushes), [true])
  assert.deepEqual(atFlush, [0, 1])
})

test('listeners in a scope hear of the sessions of that scope alone', async () => {
  const { ctx, heard } = await setup()
  const [one, two] = [createScope(ctx, {}), createScope(ctx, {})]
  for (const [name, scope] of [
    ['one', one],
    ['two', two],
  ] as const) {
    scope.ctx.on('session/created', session => {
      heard.push(`${name}: created ${session.id}`)
    })
    scope.ctx.on('session/event', (_session, event) => {
      heard.push(`${name}: ${event.type}`)
    })
    scope.ctx.on('session/disposed', () => {
      heard.push(`${name}: disposed`)
    })
  }
  const session = one.ctx.sessions.create(s)
  session.append('turn/start', { turn: 1 })
  ctx.sessions.create(SessionId('global'))
  await two.dispose()
  await one.dispose()
  assert.deepEqual(heard, [
    'created s',
    'one: created s',
    'turn/start s',
    'one: turn/start',
    'created global',
    'disposed s',
    'one: disposed',
  ])
})

test('a preparation is given back once', () => {
  let released = 0
  const session = Session.create(s)
  const preparation = createPreparation(session, () => void released++, ['mended'])
  assert.equal(preparation.session, session)
  assert.deepEqual(preparation.notices, ['mended'])
  preparation[Symbol.dispose]()
  preparation[Symbol.dispose]()
  assert.equal(released, 1)
})

type AnyAppend = (type: string, data: unknown, intent?: object) => SessionEvent

function appendTo(session: Session): AnyAppend {
  return session.append.bind(session) as unknown as AnyAppend
}

test('a plugin says what its events hold, and is named where one is wrong', async () => {
  const { ctx } = await setup()
  const plugin = ctx.plugin(function weather(own: Context) {
    own.sessions.registerEventType({
      type: 'weather/seen' as never,
      validate: data => {
        if (typeof (data as { degrees?: unknown }).degrees !== 'number')
          throw new TypeError('degrees is no number')
      },
    })
  })
  const session = ctx.sessions.create(s)
  const append = appendTo(session)
  assert.throws(() => append('weather/seen', { degrees: 'hot' }), {
    code: 'INVALID_EVENT',
    message: 'event "weather/seen" of plugin "weather": degrees is no number',
  })
  assert.throws(() => append('weather/seen', { degrees: NaN }), {
    name: 'TypeError',
    message: /^event "weather\/seen" of plugin "weather": data\.degrees is NaN,/,
  })
  assert.equal(session.length, 0)
  assert.deepEqual(Object.keys(append('weather/seen', { degrees: 20 })), ['type', 'seq', 'time', 'data'])
  const taken = { type: 'weather/seen' } as never
  assert.throws(() => ctx.sessions.registerEventType(taken), {
    code: 'DUPLICATE_EVENT_TYPE',
    message: 'event type "weather/seen" of plugin "root" is already declared by plugin "weather"',
  })
  assert.throws(() => ctx.sessions.registerEventType({ type: 'turn/start' }), {
    code: 'DUPLICATE_EVENT_TYPE',
    message: /already declared by the core/,
  })
  await plugin.dispose()
  ctx.sessions.registerEventType(taken)
})

test('what is written is read by the next life: marked as skippable unless a plugin declared it', async () => {
  const { ctx } = await setup()
  ctx.plugin(function known(own: Context) {
    own.sessions.registerEventType({ type: 'known/required' as never })
    own.sessions.registerEventType({ type: 'known/detail' as never, ignorable: true })
  })
  const append = appendTo(ctx.sessions.create(s))
  const marks = [
    append('known/required', {}),
    append('known/detail', {}),
    append('known/required', {}, { ignorable: true }),
    append('unknown/fact', {}),
    append('tool/start', { turn: 1, step: 1, callId: 'c' }),
    append('user/message', userFact('a'), { surfaceOp: 'append', ignorable: true }),
    append('todo/write', { todos: [] }),
  ].map(event => event.ignorable)
  assert.deepEqual(marks, [undefined, true, true, true, true, true, undefined])

  const stored = (): SessionEvent[] => JSON.parse(JSON.stringify(ctx.sessions.get(s)?.events))
  const prepare = (store: SessionStore): Session => {
    const meta = { version: 0, id: s, createdAt: 1 }
    return store.prepare(s, { seed: stored(), meta, seedSource: 'persistence' })
  }
  assert.equal(prepare(ctx.sessions).readOnly, undefined)
  const without = await setup()
  const { readOnly } = prepare(without.ctx.sessions)
  assert.match(readOnly ?? '', /events of type "known\/required" \(first: 0\)/)
})

test('a log found under another id is refused, and both are named', async () => {
  const { ctx } = await setup()
  const meta = { version: 0, id: SessionId('other'), createdAt: 1 }
  assert.throws(() => ctx.sessions.prepare(s, { seed: [], meta, seedSource: 'persistence' }), {
    code: 'INVALID_HEADER',
    message: 'header of session "s": it names session "other"',
  })
})
