import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { CallId, SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { answerFact, callFact, logOf, userFact } from '../given.ts'
import { append, startProgram, storedEvents as stored } from './store-program.ts'
import type { StoreCases, StorePlace } from './store-program.ts'
import { headerOf, turnOf } from './store-samples.ts'

const id = SessionId('s1')

/** How live sessions are written, and cold ones read and resumed. */
export const storedSessionCases: StoreCases = {
  'what was flushed is stored, and what follows is stored at the end of the window': async place => {
    const { ctx, clock, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ['turn/start', { turn: 1 }])
    assert.equal(await ctx.sessions.flush(session), true)
    append(session, ['step/start', { turn: 1, step: 1 }])
    assert.deepEqual(await stored(place, id), session.events.slice(0, 1))
    clock.expire()
    await ctx.sessions.flush(session)
    assert.deepEqual(await stored(place, id), session.events)
    await stop()
  },

  'a session that ends, and a store that ends, leave nothing unwritten': async place => {
    const { ctx, stop } = await startProgram(place)
    const ended = ctx.sessions.prepare(SessionId('ended'))
    const leave = ctx.sessions.enter(ended)
    ctx.sessions.announce(ended)
    append(ended, ...turnOf('a'))
    leave()
    await ctx.sessionPersistence.inspect(SessionId('ended'))
    assert.deepEqual(await stored(place, SessionId('ended')), ended.events)
    const { writer } = await place.open().resume(SessionId('ended'))
    await writer.close()
    const open = ctx.sessions.create(id)
    append(open, ...turnOf('b'))
    await stop()
    assert.deepEqual(await stored(place, id), open.events)
  },

  'a session without events leaves no trace': async place => {
    const { ctx, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    await ctx.sessions.flush(session)
    assert.deepEqual(await ctx.sessionPersistence.list(), [])
    await stop()
    assert.deepEqual(await place.open().list(), [])
  },

  'a resumed session goes on where it was, and an untouched one is left as it is': async place => {
    const first = await startProgram(place)
    append(first.ctx.sessions.create(id, { meta: { cwd: '/srv' } }), ...turnOf('a'))
    await first.stop()
    const counts: number[] = []
    for (let life = 0; life < 3; life += 1) {
      const { ctx, stop } = await startProgram(place)
      const preparation = await ctx.sessionPersistence.prepare(id)
      const { session } = preparation
      ctx.sessions.enter(session)
      ctx.sessions.announce(session)
      counts.push(session.length)
      assert.equal(session.header.cwd, '/srv')
      await stop()
    }
    assert.deepEqual(counts, [7, 7, 7])
    assert.deepEqual((await stored(place, id)).at(-1)?.type, 'session/end-seed')
    const before = await place.open().revision(id)
    const { ctx, stop } = await startProgram(place)
    const { session } = await ctx.sessionPersistence.prepare(id)
    ctx.sessions.enter(session)
    ctx.sessions.announce(session)
    await ctx.sessions.flush(session)
    assert.equal(await place.open().revision(id), before)
    append(session, ...turnOf('b', 2))
    await stop()
    assert.deepEqual(
      (await stored(place, id)).map(event => event.seq),
      [...Array(13).keys()],
    )
  },

  'looking at a log that breaks off shows it closed, the same each time, and changes nothing':
    async place => {
      await storeOpenTurn(place)
      const before = await place.open().revision(id)
      const { ctx, stop } = await startProgram(place)
      const first = await ctx.sessionPersistence.inspect(id)
      assert.deepEqual(await ctx.sessionPersistence.inspect(id), first)
      assert.deepEqual(closing(first.events), [
        ['tool/result', 'TOOL_OUTCOME_UNKNOWN', [5]],
        ['tool/result', 'TOOL_NOT_STARTED', [6]],
        ['tool/result', 'TOOL_NOT_STARTED', undefined],
        ['step/end'],
        ['turn/end'],
      ])
      assert.equal(await place.open().revision(id), before)
      await stop()
    },

  'resuming a log that breaks off stores what closes it': async place => {
    await storeOpenTurn(place)
    const { ctx, stop } = await startProgram(place)
    const seen = await ctx.sessionPersistence.inspect(id)
    const { events } = await ctx.sessionPersistence.load(id)
    assert.deepEqual(events, seen.events)
    assert.deepEqual(await stored(place, id), seen.events)
    assert.deepEqual((await ctx.sessionPersistence.load(id)).events, seen.events)
    await stop()
  },

  'a live session is never repaired, and is looked at as it is': async place => {
    const { ctx, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ['turn/start', { turn: 1 }], ['step/start', { turn: 1, step: 1 }])
    assert.deepEqual((await ctx.sessionPersistence.inspect(id)).events, session.events)
    assert.deepEqual((await ctx.sessionPersistence.readFrom(id, 1)).events, session.events.slice(1))
    await assert.rejects(ctx.sessionPersistence.prepare(id), { code: 'SESSION_LIVE' })
    await assert.rejects(ctx.sessionPersistence.load(id), { code: 'SESSION_LIVE' })
    assert.equal((await stored(place, id)).length, 2)
    append(session, ['step/end', { turn: 1, step: 1 }])
    append(session, ['turn/end', { turn: 1, reason: { kind: 'completed' } }])
    assert.deepEqual((await ctx.sessionPersistence.load(id)).events, session.events)
    await stop()
  },

  'a session that another program has open is shown as it grows, without repair': async place => {
    const owner = await startProgram(place)
    const session = owner.ctx.sessions.create(id)
    append(session, ['turn/start', { turn: 1 }])
    await owner.ctx.sessions.flush(session)
    const { ctx, stop } = await startProgram(place)
    const first = await ctx.sessionPersistence.inspect(id)
    assert.match(first.readOnly ?? '', /^it is open in another program: process \d+ since 20/)
    assert.equal(first.holder?.pid, place.pid)
    assert.deepEqual(first.events, session.events)
    await assert.rejects(ctx.sessionPersistence.prepare(id), { code: 'SESSION_HELD' })
    append(session, ['turn/end', { turn: 1, reason: { kind: 'completed' } }])
    await owner.ctx.sessions.flush(session)
    assert.deepEqual((await ctx.sessionPersistence.inspect(id)).events, session.events)
    assert.deepEqual((await ctx.sessionPersistence.readFrom(id, 1)).events, session.events.slice(1))
    await owner.stop()
    const preparation = await ctx.sessionPersistence.prepare(id)
    assert.equal(preparation.session.length, 3)
    await stop()
  },

  'a session that comes from elsewhere is stored with the contents that its events name': async place => {
    const { ctx, stop } = await startProgram(place)
    const bytes = Buffer.from('a picture')
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const events = logOf(...turnOf('a'))
    await ctx.sessionPersistence.create(headerOf(id))
    await ctx.sessionPersistence.append(id, events, [{ bytes, mediaType: 'image/png' }])
    await stop()
    assert.deepEqual(await stored(place, id), events)
    assert.deepEqual(Buffer.from((await place.open().artifact(id, sha256)) ?? []), bytes)
  },

  'a reserved session is for one, and is given back when it is not published': async place => {
    const first = await startProgram(place)
    append(first.ctx.sessions.create(id), ...turnOf('a'))
    await first.stop()
    const { ctx, stop } = await startProgram(place)
    const persistence = ctx.sessionPersistence
    const preparation = await persistence.prepare(id)
    await assert.rejects(persistence.prepare(id), { code: 'SESSION_LIVE' })
    await assert.rejects(persistence.append(id, []), { code: 'SESSION_LIVE' })
    assert.throws(() => ctx.sessions.create(id), { code: 'SESSION_LIVE' })
    preparation[Symbol.dispose]()
    preparation[Symbol.dispose]()
    const again = await persistence.prepare(id)
    ctx.sessions.enter(again.session)
    ctx.sessions.announce(again.session)
    again[Symbol.dispose]()
    append(again.session, ...turnOf('b', 2))
    await ctx.sessions.flush(again.session)
    assert.deepEqual(await stored(place, id), again.session.events)
    await stop()
  },

  'a preparation that is called off frees the session': async place => {
    const first = await startProgram(place)
    append(first.ctx.sessions.create(id), ...turnOf('a'))
    await first.stop()
    const { ctx, stop } = await startProgram(place)
    const reason = new Error('changed my mind')
    const controller = new AbortController()
    const called = ctx.sessionPersistence.prepare(id, controller.signal)
    controller.abort(reason)
    await assert.rejects(called, reason)
    const preparation = await ctx.sessionPersistence.prepare(id)
    assert.equal(preparation.session.id, id)
    await stop()
  },

  'events of a type that no plugin declares make a log read-only, unless they may be skipped':
    async place => {
      const known = logOf(...turnOf('a'))
      const foreign = { type: 'foreign/fact', seq: 6, time: 1, data: {} } as unknown as SessionEvent
      for (const [each, event] of [
        ['needed', foreign],
        ['skipped', { ...foreign, ignorable: true }],
      ] as const) {
        const writer = place.open().begin(headerOf(each))
        await writer.append([...known, event])
        await writer.close()
      }
      const { ctx, stop } = await startProgram(place)
      const needed = await ctx.sessionPersistence.inspect(SessionId('needed'))
      assert.match(needed.readOnly ?? '', /"foreign\/fact"/)
      assert.equal(needed.events.length, 7)
      await assert.rejects(ctx.sessionPersistence.prepare(SessionId('needed')), {
        code: 'SESSION_READ_ONLY',
        message: /"foreign\/fact"/,
      })
      const preparation = await ctx.sessionPersistence.prepare(SessionId('skipped'))
      assert.equal(preparation.session.readOnly, undefined)
      await stop()
    },

  'an event that is not right ends what is the session; the others are shown behind it': async place => {
    const events = logOf(...turnOf('a'), ['user/message', userFact('lost its id')], ...turnOf('b', 2))
    const broken = { ...events[6], data: { ...userFact(''), id: undefined } } as unknown as SessionEvent
    const writer = place.open().begin(headerOf('s1'))
    await writer.append(events.with(6, JSON.parse(JSON.stringify(broken)) as SessionEvent))
    await writer.close()
    const { ctx, stop } = await startProgram(place)
    const view = await ctx.sessionPersistence.inspect(id)
    assert.deepEqual(view.events, events.slice(0, 6))
    assert.match(view.readOnly ?? '', /damaged/)
    assert.equal(view.gaps?.[0]?.fromSeq, 6)
    assert.deepEqual(view.gaps?.[0]?.events, events.slice(7))
    await assert.rejects(ctx.sessionPersistence.prepare(id), { code: 'SESSION_DAMAGED', message: /event 6/ })
    await stop()
  },
}

/** A call that began, one that waited, and one that the model only named, when the log breaks off. */
async function storeOpenTurn(place: StorePlace): Promise<void> {
  const writer = place.open().begin(headerOf('s1'))
  await writer.append(
    logOf(
      ['turn/start', { turn: 1 }],
      ['step/start', { turn: 1, step: 1 }],
      ['user/message', userFact('go')],
      ['assistant/message', answerFact('', ['ran', 'waited', 'named'])],
      ['tool/call', callFact('ran')],
      ['tool/start', { turn: 1, step: 1, callId: CallId('ran') }, { ignorable: true }],
      ['tool/call', callFact('waited')],
    ),
  )
  await writer.close()
}

function closing(events: readonly SessionEvent[]): readonly unknown[] {
  return events.slice(7).map(event => {
    if (event.type !== 'tool/result') return [event.type]
    return [event.type, event.data.error?.code, event.sourceEventSeqs]
  })
}
