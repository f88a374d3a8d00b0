import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { logOf, userFact } from '../given.ts'
import type { StoreCases, StorePlace } from './store-program.ts'
import { everyType, headerOf, turnOf } from './store-samples.ts'
import { followedSessionCases } from './followed-sessions.ts'
import { storedIdentityCases } from './stored-identity.ts'
import { storedLogCases } from './stored-logs.ts'
import { storedSessionCases } from './stored-sessions.ts'

export type { StorePlace } from './store-program.ts'

/**
 * What every medium of `mountPersistence` does alike, as tests. `setup` gives a fresh, empty place, and removes it
 * with the test's `after`.
 */
export function testStore(name: string, setup: (t: TestContext) => StorePlace | Promise<StorePlace>): void {
  const all: StoreCases = {
    ...mediumCases,
    ...storedLogCases,
    ...storedSessionCases,
    ...storedIdentityCases,
    ...followedSessionCases,
  }
  for (const [title, run] of Object.entries(all)) {
    test(`${name}: ${title}`, async t => run(await setup(t)))
  }
}

const id = SessionId('s1')
const header = headerOf('s1')

const mediumCases: StoreCases = {
  'events of every type come back as they were, in any batches': async place => {
    const events = everyType()
    for (const size of [1, 7, events.length]) {
      const own = headerOf(`size-${size}`)
      const writer = place.open().begin(own)
      for (let at = 0; at < events.length; at += size) await writer.append(events.slice(at, at + size))
      await writer.close()
      const log = await place.open().read(own.id)
      assert.deepEqual(log?.header, own)
      assert.deepEqual(log?.events, events)
      assert.deepEqual(log?.gaps, [])
      assert.equal(log?.toolStart, true)
    }
  },

  'a value of any depth comes back': async place => {
    const depth = 12_000
    const deep: unknown = JSON.parse(`${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`)
    const events = logOf(['turn/start', { turn: 1 }])
    const [first] = events
    const writer = place.open().begin(header)
    await writer.append([{ ...first, type: 'x/deep', data: deep } as unknown as SessionEvent])
    await writer.close()
    let value: unknown = (await place.open().read(id))?.events[0]?.data
    let levels = 0
    for (; Array.isArray(value); levels += 1) value = (value[0] as { a: unknown }).a
    assert.deepEqual([levels, value], [depth, 1])
  },

  'a log that nothing was appended to is not there': async place => {
    const medium = place.open()
    const writer = medium.begin(header)
    await writer.append([])
    assert.deepEqual(await medium.list(), [])
    assert.equal(await medium.read(id), undefined)
    assert.equal(await medium.revision(id), undefined)
    await writer.close()
    assert.deepEqual(await medium.list(), [])
  },

  'events that do not continue the log are refused, and change nothing': async place => {
    const events = logOf(...turnOf('a'))
    const writer = place.open().begin(header)
    await assert.rejects(writer.append(events.slice(1)), { code: 'STALE_APPEND' })
    await writer.append(events.slice(0, 2))
    const revision = await place.open().revision(id)
    await assert.rejects(writer.append(events.slice(3)), { code: 'STALE_APPEND' })
    await assert.rejects(writer.append(events.slice(0, 2)), { code: 'STALE_APPEND' })
    await assert.rejects(writer.append([...events.slice(2, 4), ...events.slice(5)]), { code: 'STALE_APPEND' })
    assert.equal(await place.open().revision(id), revision)
    await writer.append(events.slice(2))
    await writer.close()
    assert.deepEqual((await place.open().read(id))?.events, events)
  },

  'a second writer is told who has the log, reads it live, and gets it once it is free': async place => {
    const events = logOf(...turnOf('a'))
    const first = place.open().begin(header)
    await first.append(events.slice(0, 2))
    const second = place.open()
    const refusal = await second.resume(id).then(
      () => undefined,
      (error: { code: string; holder: { pid: number; since: number } }) => error,
    )
    assert.equal(refusal?.code, 'SESSION_HELD')
    assert.equal(refusal?.holder.pid, place.pid)
    assert.ok(Math.abs(Date.now() - refusal.holder.since) < 60_000)
    assert.deepEqual((await second.read(id))?.holder, refusal.holder)
    await first.append(events.slice(2, 4))
    assert.equal((await second.read(id))?.events.length, 4)
    await first.close()
    const { log, writer } = await second.resume(id)
    assert.equal(log.holder, undefined)
    await writer.append(events.slice(4))
    await writer.close()
    assert.deepEqual((await second.read(id))?.events, events)
  },

  'whoever lost the log to a person who took it over writes no more': async place => {
    const events = logOf(...turnOf('a'))
    const first = place.open().begin(header)
    await first.append(events.slice(0, 2))
    const second = place.open()
    const holder = (await second.read(id))?.holder
    assert.ok(holder !== undefined)
    const stale = { ...holder, nonce: 'another' }
    await assert.rejects(second.resume(id, { takeFrom: stale }), { code: 'SESSION_HELD' })
    const { writer } = await second.resume(id, { takeFrom: holder })
    await assert.rejects(first.append(events.slice(2)), { code: 'SESSION_HELD' })
    await writer.append(events.slice(2, 4))
    await assert.rejects(first.append(events.slice(2)), { code: 'SESSION_HELD' })
    await first.close()
    await writer.append(events.slice(4))
    await writer.close()
    assert.deepEqual((await second.read(id))?.events, events)
  },

  'a stored id cannot be begun again': async place => {
    const events = logOf(...turnOf('a'))
    const writer = place.open().begin(header)
    await writer.append(events)
    await writer.close()
    for (const other of [header, headerOf('s1', { cwd: '/srv/elsewhere' })]) {
      const again = place.open().begin(other)
      await assert.rejects(again.append(logOf(...turnOf('b'))), { code: 'SESSION_EXISTS' })
      await again.close()
    }
    assert.deepEqual((await place.open().read(id))?.events, events)
    assert.equal((await place.open().list()).length, 1)
  },

  'an id that is not stored cannot be resumed': async place => {
    await assert.rejects(place.open().resume(id), { code: 'SESSION_NOT_FOUND' })
  },

  'the end of a log is read without its beginning': async place => {
    const events = logOf(...turnOf('a'), ...turnOf('b', 2))
    const writer = place.open().begin(header)
    await writer.append(events.slice(0, 5))
    await writer.append(events.slice(5))
    await writer.close()
    for (const fromSeq of [0, 1, 5, 8, 12, 100]) {
      assert.deepEqual((await place.open().read(id, { fromSeq }))?.events, events.slice(fromSeq))
    }
  },

  'a revision changes with every write and with nothing else': async place => {
    const events = logOf(...turnOf('a'))
    const writer = place.open().begin(header)
    await writer.append(events.slice(0, 2))
    const medium = place.open()
    const first = await medium.revision(id)
    await medium.read(id)
    await medium.list()
    assert.equal(await place.open().revision(id), first)
    assert.equal((await medium.read(id))?.revision, first)
    await writer.append(events.slice(2))
    assert.notEqual(await medium.revision(id), first)
    await writer.close()
  },

  'every log is listed with its header': async place => {
    const ids = ['a', 'B', '../escape', 'c/d', '漢字', '.', 'ends.', '~', 'x'.repeat(120)]
    for (const each of ids) {
      const writer = place.open().begin(headerOf(each))
      await writer.append(logOf(['turn/start', { turn: 1 }], ['user/message', userFact(each)]))
      await writer.close()
    }
    const rows = await place.open().list()
    assert.deepEqual(rows.map(row => row.id).toSorted(), ids.toSorted())
    for (const row of rows) assert.deepEqual('header' in row ? row.header : row, headerOf(row.id))
  },

  'bytes are kept beside the log, under their hash': async place => {
    const writer = place.open().begin(header)
    const bytes = new Uint8Array([0, 1, 2, 255])
    const image = await writer.putArtifact(bytes, 'image/png')
    const text = await writer.putArtifact(Buffer.from('text'.repeat(1000)), 'text/plain')
    assert.deepEqual(await writer.putArtifact(bytes, 'image/png'), image)
    assert.equal(image.bytes, 4)
    assert.deepEqual([...((await writer.getArtifact(image.sha256)) ?? [])], [...bytes])
    await writer.append(logOf(['turn/start', { turn: 1 }]))
    await writer.close()
    const medium = place.open()
    assert.deepEqual([...((await medium.artifact(id, image.sha256)) ?? [])], [...bytes])
    assert.equal((await medium.artifact(id, text.sha256))?.length, 4000)
    assert.equal(await medium.artifact(id, '0'.repeat(64)), undefined)
    assert.equal(await medium.artifact(id, '../../etc/passwd'), undefined)
  },

  'a read stops with the reason of its signal': async place => {
    const writer = place.open().begin(header)
    await writer.append(logOf(...turnOf('a')))
    await writer.close()
    const reason = new Error('changed my mind')
    await assert.rejects(place.open().read(id, { signal: AbortSignal.abort(reason) }), reason)
    await assert.rejects(place.open().list(AbortSignal.abort(reason)), reason)
  },
}
