import assert from 'node:assert/strict'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { logOf, userFact } from '../given.ts'
import { append, startProgram } from './store-program.ts'
import type { StoreCases, StorePlace, StoreProgram } from './store-program.ts'
import { headerOf, turnOf } from './store-samples.ts'

const id = SessionId('s1')

/** How a session is read while it grows, in whatever program, and how one goes for good. */
export const followedSessionCases: StoreCases = {
  'a second program follows what another writes, until nobody writes any more': async place => {
    const owner = await startProgram(place)
    const session = owner.ctx.sessions.create(id)
    append(session, ...turnOf('a'))
    await owner.ctx.sessions.flush(session)
    const program = await startProgram(place)
    const reader = follow(program, { whileOpen: true })
    assert.deepEqual(await reader.take(6), session.events)
    append(session, ...turnOf('b', 2))
    await owner.ctx.sessions.flush(session)
    assert.deepEqual(await reader.take(6), session.events.slice(6))
    append(session, ['turn/start', { turn: 3 }])
    await owner.stop()
    assert.deepEqual(await reader.rest(), session.events.slice(12))
    await program.stop()
  },

  'following begins where it is told to, and writes and holds nothing': async place => {
    const events = logOf(...turnOf('a'))
    await store(place, events)
    const before = await place.open().revision(id)
    const program = await startProgram(place)
    const reader = follow(program, { fromSeq: 4 })
    assert.deepEqual(await reader.take(2), events.slice(4))
    assert.equal(await place.open().revision(id), before)
    const { writer } = await place.open().resume(id)
    const more = logOf(...turnOf('a'), ['turn/start', { turn: 2 }]).slice(6)
    await writer.append(more)
    assert.deepEqual(await reader.take(1), more)
    await writer.close()
    await program.stop()
  },

  'following a session that is live here shows its events before they are stored': async place => {
    const program = await startProgram(place)
    const { ctx, stop } = program
    const session = ctx.sessions.create(id)
    append(session, ['turn/start', { turn: 1 }])
    const reader = follow(program)
    assert.deepEqual(await reader.take(1), session.events)
    append(session, ['step/start', { turn: 1, step: 1 }])
    assert.deepEqual(await reader.take(1), session.events.slice(1))
    assert.equal(await place.open().read(id), undefined)
    await stop()
  },

  'whoever follows a session here goes on when it ends here and another program resumes it': async place => {
    const program = await startProgram(place)
    const { ctx, stop } = program
    const session = ctx.sessions.prepare(id)
    const leave = ctx.sessions.enter(session)
    ctx.sessions.announce(session)
    append(session, ...turnOf('a'))
    const reader = follow(program)
    const first = await reader.take(6)
    leave()
    await ctx.sessionPersistence.inspect(id)
    const other = await startProgram(place)
    const { session: resumed } = await other.ctx.sessionPersistence.prepare(id)
    other.ctx.sessions.enter(resumed)
    other.ctx.sessions.announce(resumed)
    append(resumed, ...turnOf('b', 2))
    await other.ctx.sessions.flush(resumed)
    assert.deepEqual([...first, ...(await reader.take(7))], resumed.events)
    await other.stop()
    await stop()
  },

  'following ends with the signal, quietly': async place => {
    await store(place, logOf(...turnOf('a')))
    const program = await startProgram(place)
    const controller = new AbortController()
    const reader = follow(program, { signal: controller.signal })
    await reader.take(3)
    controller.abort(new Error('enough'))
    assert.deepEqual(await reader.rest(), [])
    assert.deepEqual(await follow(program, { signal: controller.signal }).rest(), [])
    await program.stop()
  },

  'following ends when the session is removed, and cannot begin where there is none': async place => {
    await store(place, logOf(...turnOf('a')))
    const program = await startProgram(place)
    const reader = follow(program)
    await reader.take(6)
    const waiting = reader.rest()
    assert.equal(await program.ctx.sessionPersistence.remove(id), true)
    assert.deepEqual(await waiting, [])
    await assert.rejects(follow(program).rest(), { code: 'SESSION_NOT_FOUND' })
    for (const fromSeq of [-1, 0.5]) await assert.rejects(follow(program, { fromSeq }).rest(), RangeError)
    await program.stop()
  },

  'following ends with an error when another log has taken the place of the one it read': async place => {
    await store(place, logOf(...turnOf('a')))
    const later = logOf(...turnOf('other')).map(event => ({ ...event, time: event.time + 1 }))
    for (const other of [later, later.slice(0, 2)]) {
      const program = await startProgram(place)
      const reader = follow(program)
      await reader.take(6)
      await place.open().remove(id)
      await store(place, other)
      await assert.rejects(reader.rest(), { code: 'LOG_REPLACED' })
      await program.stop()
      await place.open().remove(id)
      await store(place, logOf(...turnOf('a')))
    }
  },

  'following goes up to damage, and on where a repair kept all that was read': async place => {
    if (place.damage === undefined) return
    const events = logOf(...turnOf('a'), ...turnOf('b', 2))
    const writer = place.open().begin(headerOf('s1'))
    for (const cut of [0, 4, 8]) await writer.append(events.slice(cut, cut + 4))
    await writer.close()
    const program = await startProgram(place)
    const early = follow(program)
    const late = follow(program)
    await early.take(4)
    await late.take(6)
    await place.damage(id, 4)
    const fresh = follow(program)
    assert.deepEqual(await fresh.take(4), events.slice(0, 4))
    await assert.rejects(fresh.rest(), { code: 'SESSION_DAMAGED' })
    await program.ctx.sessionPersistence.repair(id)
    await assert.rejects(late.rest(), { code: 'LOG_REPLACED' })
    const again = follow(program, { whileOpen: true })
    assert.deepEqual(await again.rest(), events.slice(0, 4))
    await program.stop()
  },

  'whoever follows is told when the store ends': async place => {
    await store(place, logOf(...turnOf('a')))
    const program = await startProgram(place)
    const reader = follow(program)
    await reader.take(6)
    const waiting = assert.rejects(reader.rest(), { code: 'STORE_CLOSED' })
    await program.stop()
    await waiting
  },

  'a stream of a live session is what it has at that moment': async place => {
    const { ctx, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ...turnOf('a'))
    const shown: SessionEvent[] = []
    for await (const { events } of ctx.sessionPersistence.stream(id, { fromSeq: 1, toSeq: 4 })) {
      shown.push(...events)
      append(session, ['turn/start', { turn: 2 }])
    }
    assert.deepEqual(shown, session.events.slice(1, 5))
    await assert.rejects(Array.fromAsync(ctx.sessionPersistence.stream(SessionId('nobody'))), {
      code: 'SESSION_NOT_FOUND',
    })
    await stop()
  },

  'in a stream an event that is not right is a gap, and the others stand behind it': async place => {
    const events = logOf(...turnOf('a'), ['user/message', userFact('lost its id')], ...turnOf('b', 2))
    const wrong = [
      { ...events[6], data: { ...userFact(''), id: undefined } },
      { ...events[6], surfaceOp: 'sideways' },
    ]
    for (const [index, broken] of wrong.entries()) {
      const own = SessionId(`wrong-${index}`)
      const writer = place.open().begin(headerOf(own))
      await writer.append(events.with(6, JSON.parse(JSON.stringify(broken)) as SessionEvent))
      await writer.close()
      const { ctx, stop } = await startProgram(place)
      const batches = await Array.fromAsync(ctx.sessionPersistence.stream(own))
      assert.deepEqual(
        batches.flatMap(batch => batch.events),
        events.toSpliced(6, 1),
      )
      const gaps = batches.flatMap(({ gap }) => (gap === undefined ? [] : [gap]))
      assert.deepEqual(
        gaps.map(({ fromSeq, toSeq, bytes }) => [fromSeq, toSeq, bytes]),
        [[6, 6, 0]],
      )
      const stored = await Array.fromAsync(ctx.sessionPersistence.stream(own, { isUnchecked: true }))
      assert.deepEqual(
        stored.flatMap(batch => batch.events),
        events.with(6, JSON.parse(JSON.stringify(broken)) as SessionEvent),
      )
      const view = await ctx.sessionPersistence.inspect(own)
      assert.deepEqual(view.gaps?.[0]?.fromSeq, 6)
      await stop()
    }
  },

  'a live, reserved or held session is neither removed nor repaired': async place => {
    const owner = await startProgram(place)
    const session = owner.ctx.sessions.create(id)
    append(session, ...turnOf('a'))
    await owner.ctx.sessions.flush(session)
    const program = await startProgram(place)
    for (const [{ ctx }, code] of [
      [owner, 'SESSION_LIVE'],
      [program, 'SESSION_HELD'],
    ] as const) {
      await assert.rejects(ctx.sessionPersistence.remove(id), { code })
      await assert.rejects(ctx.sessionPersistence.repair(id), { code })
    }
    await owner.stop()
    const preparation = await program.ctx.sessionPersistence.prepare(id)
    await assert.rejects(program.ctx.sessionPersistence.remove(id), { code: 'SESSION_LIVE' })
    preparation[Symbol.dispose]()
    assert.equal(await program.ctx.sessionPersistence.remove(id), true)
    assert.equal(await program.ctx.sessionPersistence.remove(id), false)
    assert.deepEqual(await program.ctx.sessionPersistence.list(), [])
    await program.stop()
  },

  'what is stored of a live session is checked up to its last event': async place => {
    const { ctx, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ...turnOf('a'))
    const report = await ctx.sessionPersistence.verify(id)
    assert.deepEqual([report.events, report.problems, report.header], [6, [], session.header])
    await assert.rejects(ctx.sessionPersistence.verify(SessionId('nobody')), { code: 'SESSION_NOT_FOUND' })
    await stop()
  },

  'a log as a file is there exactly where the store says so': async place => {
    await store(place, logOf(...turnOf('a')))
    const { ctx, stop } = await startProgram(place)
    const { sessionPersistence } = ctx
    if (sessionPersistence.supportsRawArtifacts)
      assert.deepEqual((await sessionPersistence.readRaw(id))?.header, headerOf('s1'))
    else await assert.rejects(sessionPersistence.readRaw(id), { code: 'NOT_SUPPORTED' })
    await stop()
  },
}

/** Of the event loop: far more than any store needs for a read. */
const mostTurns = 50_000

interface FollowReader {
  /** The next events, as many as that. */
  take(count: number): Promise<readonly SessionEvent[]>
  /** All up to the end. */
  rest(): Promise<readonly SessionEvent[]>
}

/** A reader whose clock moves as long as it waits. */
function follow(
  { ctx, clock }: StoreProgram,
  options: Parameters<typeof ctx.sessionPersistence.follow>[1] = {},
): FollowReader {
  const events = ctx.sessionPersistence.follow(id, options)[Symbol.asyncIterator]()
  const next = async (): Promise<IteratorResult<SessionEvent>> => {
    let isWaiting = true
    const result = events.next().finally(() => {
      isWaiting = false
    })
    result.catch(() => undefined)
    for (let turns = 0; isWaiting && turns < mostTurns; turns += 1) {
      await new Promise(resolve => setImmediate(resolve))
      clock.look()
    }
    assert.ok(!isWaiting, 'nothing came')
    return result
  }
  return {
    async take(count) {
      const taken: SessionEvent[] = []
      while (taken.length < count) {
        const { done, value } = await next()
        assert.ok(done !== true, `it ended after ${taken.length} of ${count}`)
        taken.push(value)
      }
      return taken
    },
    async rest() {
      const rest: SessionEvent[] = []
      for (let result = await next(); result.done !== true; result = await next()) rest.push(result.value)
      return rest
    },
  }
}

async function store(place: StorePlace, events: readonly SessionEvent[]): Promise<void> {
  const writer = place.open().begin(headerOf('s1'))
  await writer.append(events)
  await writer.close()
}
