import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { CallId, SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { answerFact, callFact, logOf, userFact } from '../given.ts'
import { append, startProgram, storedEvents as stored } from './store-program.ts'
import type { StoreCases } from './store-program.ts'
import { headerOf, turnOf } from './store-samples.ts'

const id = SessionId('s1')

/** Which session may write which log. */
export const storedIdentityCases: StoreCases = {
  'a new session under a stored id is refused, and the stored one stays': async place => {
    const first = await startProgram(place)
    const old = first.ctx.sessions.create(id)
    append(old, ...turnOf('a'))
    await first.stop()
    const { ctx, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ...turnOf('b'))
    await assert.rejects(ctx.sessions.flush(session), { code: 'SESSION_EXISTS' })
    await assert.rejects(ctx.sessions.flush(session), { code: 'SESSION_EXISTS' })
    await assert.rejects(stop())
    assert.deepEqual(await stored(place, id), old.events)
  },

  'a store that is reloaded in the middle of a turn goes on with the live session': async place => {
    const { ctx, unmount, mount, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ['turn/start', { turn: 1 }], ['step/start', { turn: 1, step: 1 }])
    await unmount()
    append(session, ['user/message', userFact('while there was no store')])
    append(session, ['assistant/message', answerFact('', ['c1'])], ['tool/call', callFact('c1')])
    await mount()
    await ctx.sessions.flush(session)
    assert.deepEqual(await stored(place, id), session.events)
    assert.deepEqual(session.last('tool/start')?.data.callId, CallId('c1'))
    await stop()
    assert.deepEqual(await stored(place, id), session.events)
  },

  'a live session does not go on with a log of another place or another course': async place => {
    const { ctx, unmount, mount, stop } = await startProgram(place)
    const session = ctx.sessions.create(id, { meta: { cwd: '/srv' } })
    append(session, ['turn/start', { turn: 1 }])
    await unmount()
    const { writer } = await place.open().resume(id)
    const foreign = logOf(['turn/start', { turn: 1 }], ['step/start', { turn: 1, step: 1 }]).slice(1)
    await writer.append(foreign)
    await writer.close()
    await mount()
    append(session, ['turn/end', { turn: 1, reason: { kind: 'completed' } }])
    await assert.rejects(ctx.sessions.flush(session), { code: 'SESSION_EXISTS' })
    assert.deepEqual((await stored(place, id)).slice(1), foreign)
    await assert.rejects(stop())
  },

  'a fork is stored whole, once, with the pictures of its beginning': async place => {
    const { ctx, stop } = await startProgram(place)
    const parent = ctx.sessions.create(id)
    const { sha256 } = await parent.artifacts.put(new Uint8Array([1, 2, 3]), 'image/png')
    const attachment = { sha256, mediaType: 'image/png', bytes: 3 }
    append(parent, ...turnOf('a'), [
      'user/message',
      { ...userFact('see'), content: [{ type: 'image', attachment }] },
    ])
    const child = ctx.sessions.fork(parent, undefined, SessionId('child'))
    append(child, ...turnOf('b', 2))
    await ctx.sessions.flush(child)
    assert.deepEqual(await stored(place, child.id), child.events)
    assert.equal((await place.open().artifact(child.id, sha256))?.length, 3)
    await stop()
  },

  'what a session kept before it had a store is kept with it': async place => {
    const { ctx, unmount, mount, stop } = await startProgram(place)
    await unmount()
    const session = ctx.sessions.create(id)
    const { sha256 } = await session.artifacts.put(new Uint8Array([1]), 'image/png')
    append(session, ...turnOf('a'))
    await mount()
    await ctx.sessions.flush(session)
    assert.deepEqual([...((await place.open().artifact(id, sha256)) ?? [])], [1])
    assert.deepEqual([...((await session.artifacts.get(sha256)) ?? [])], [1])
    await stop()
  },

  'what a session keeps while its store is reloaded is kept too': async place => {
    const { ctx, unmount, mount, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ...turnOf('a'))
    await unmount()
    const { sha256 } = await session.artifacts.put(new Uint8Array([1]), 'image/png')
    append(session, ...turnOf('b', 2))
    await mount()
    await ctx.sessions.flush(session)
    assert.deepEqual(await stored(place, id), session.events)
    assert.deepEqual([...((await place.open().artifact(id, sha256)) ?? [])], [1])
    await stop()
  },

  'a picture for a session under an id that is taken goes nowhere': async place => {
    const first = await startProgram(place)
    append(first.ctx.sessions.create(id), ...turnOf('a'))
    await first.stop()
    const { ctx, stop } = await startProgram(place)
    const session = ctx.sessions.create(id)
    append(session, ['user/message', userFact('another session')])
    await assert.rejects(session.artifacts.put(new Uint8Array([1]), 'image/png'), { code: 'SESSION_EXISTS' })
    const sha256 = createHash('sha256')
      .update(new Uint8Array([1]))
      .digest('hex')
    assert.equal(await place.open().artifact(id, sha256), undefined)
    await assert.rejects(stop())
  },

  'an id of a session that left without events is free': async place => {
    const { ctx, stop } = await startProgram(place)
    const first = ctx.sessions.prepare(id)
    const leave = ctx.sessions.enter(first)
    ctx.sessions.announce(first)
    leave()
    const second = ctx.sessions.create(id)
    append(second, ...turnOf('a'))
    await ctx.sessions.flush(second)
    assert.deepEqual(await stored(place, id), second.events)
    await stop()
  },

  'events without a live session are created, appended and checked': async place => {
    const { ctx, stop } = await startProgram(place)
    const persistence = ctx.sessionPersistence
    const events = logOf(...turnOf('a'))
    await assert.rejects(persistence.create(headerOf('s1', { createdAt: 1.5 })), { code: 'INVALID_HEADER' })
    await persistence.create(headerOf('s1'))
    await assert.rejects(persistence.create(headerOf('s1')), { code: 'SESSION_EXISTS' })
    assert.deepEqual(await persistence.list(), [])
    await assert.rejects(persistence.append(id, events.slice(1)), { code: 'INVALID_EVENT' })
    const mutable = JSON.parse(JSON.stringify(events.slice(0, 3))) as { data: unknown }[]
    const appended = persistence.append(id, mutable as unknown as SessionEvent[])
    for (const event of mutable) event.data = 'changed afterwards'
    await appended
    await persistence.append(id, [])
    await persistence.append(id, events.slice(3))
    assert.deepEqual(await stored(place, id), events)
    await assert.rejects(persistence.append(id, events.slice(3)), { code: 'INVALID_EVENT' })
    await assert.rejects(persistence.append(SessionId('nobody'), events), { code: 'SESSION_NOT_FOUND' })
    const [snapshot] = await persistence.listSnapshots()
    assert.deepEqual(snapshot?.header, headerOf('s1'))
    assert.equal(snapshot?.revision, await place.open().revision(id))
    await stop()
  },

  'the end of a log is asked for with a sensible number': async place => {
    const { ctx, stop } = await startProgram(place)
    for (const fromSeq of [-1, 1.5, NaN]) {
      await assert.rejects(ctx.sessionPersistence.readFrom(id, fromSeq), RangeError)
    }
    await assert.rejects(ctx.sessionPersistence.readFrom(id, 0), { code: 'SESSION_NOT_FOUND' })
    await assert.rejects(ctx.sessionPersistence.inspect(id), { code: 'SESSION_NOT_FOUND' })
    await assert.rejects(ctx.sessionPersistence.prepare(id), { code: 'SESSION_NOT_FOUND' })
    await stop()
  },
}
