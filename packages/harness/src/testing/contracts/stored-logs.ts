import assert from 'node:assert/strict'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { StoredBatch } from '../../core/session/index.ts'
import type { Medium, StreamOptions } from '../../plugins/persistence/index.ts'
import { logOf, userFact } from '../given.ts'
import type { StoreCases, StorePlace } from './store-program.ts'
import { everyType, headerOf, turnOf } from './store-samples.ts'

const id = SessionId('s1')
const header = headerOf('s1')

/** How whole logs are streamed, removed, checked and repaired. */
export const storedLogCases: StoreCases = {
  'a stream gives what a read gives, from any event to any other': async place => {
    const events = everyType()
    await store(place, events, [1, 7, 8, 20])
    const medium = place.open()
    const { length } = events
    for (const fromSeq of [undefined, 0, 1, 6, 7, 9, length - 1, length, length + 5]) {
      for (const toSeq of [undefined, 0, 6, 7, 19, length - 1, length + 5]) {
        const { shown, gaps } = await streamed(medium, { fromSeq, toSeq })
        assert.deepEqual(shown, events.slice(fromSeq, toSeq === undefined ? undefined : toSeq + 1))
        assert.deepEqual(gaps, [])
      }
    }
  },

  'a stream of a long log comes in batches much smaller than the log': async place => {
    const drafts = Array.from({ length: 2000 }, (_, index) =>
      turnOf(`${index} ${'x'.repeat(500)}`, index + 1).slice(2, 3),
    ).flat()
    const events = logOf(...drafts)
    await store(
      place,
      events,
      Array.from({ length: 19 }, (_, index) => (index + 1) * 100),
    )
    const medium = place.open()
    const sizes: number[] = []
    for await (const batch of medium.stream(id)) sizes.push(batch.events.length)
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      2000,
    )
    assert.ok(Math.max(...sizes) <= 1000, `batches of ${sizes.join(', ')} events`)
  },

  'a stream of nothing rejects, and one that is called off stops with the reason': async place => {
    const medium = place.open()
    await assert.rejects(streamed(medium), { code: 'SESSION_NOT_FOUND' })
    await store(place, logOf(...turnOf('a')))
    const reason = new Error('changed my mind')
    await assert.rejects(streamed(medium, { signal: AbortSignal.abort(reason) }), reason)
    for await (const batch of medium.stream(id)) {
      assert.ok(batch.events.length > 0)
      break
    }
    assert.equal(await medium.remove(id), true)
  },

  'a stream of a log that somebody writes gives what is durable': async place => {
    const events = logOf(...turnOf('a'), ...turnOf('b', 2))
    const writer = place.open().begin(header)
    const medium = place.open()
    for (const end of [1, 5, 12]) {
      await writer.append(events.slice((await streamed(medium).catch(() => none)).shown.length, end))
      assert.deepEqual((await streamed(medium)).shown, events.slice(0, end))
    }
    await writer.close()
  },

  'the log as a file is its header and its events, one JSON line each': async place => {
    const medium = place.open()
    if (medium.readRaw === undefined) return
    assert.equal(await medium.readRaw(id), undefined)
    const events = everyType()
    await store(place, events, [3, 10])
    const raw = await medium.readRaw(id)
    assert.deepEqual(raw?.header, header)
    assert.match(raw?.filename ?? '', /^[\w.-]+\.jsonl$/)
    const lines = Buffer.from(raw?.content ?? [])
      .toString('utf8')
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>)
    assert.equal(lines[0]?.['id'], id)
    assert.deepEqual(lines.at(-1), events.at(-1))
  },

  'a removed log is gone with all that belongs to it, and its id is free': async place => {
    const events = logOf(...turnOf('a'))
    const writer = place.open().begin(header)
    const { sha256 } = await writer.putArtifact(new Uint8Array([1, 2]), 'image/png')
    await writer.append(events)
    await writer.close()
    const medium = place.open()
    assert.equal(await medium.remove(id), true)
    assert.equal(await medium.remove(id), false)
    assert.equal(await medium.read(id), undefined)
    assert.equal(await medium.revision(id), undefined)
    assert.equal(await medium.artifact(id, sha256), undefined)
    assert.deepEqual(await medium.list(), [])
    await assert.rejects(medium.resume(id), { code: 'SESSION_NOT_FOUND' })
    const other = logOf(...turnOf('b'))
    await store(place, other)
    assert.deepEqual((await place.open().read(id))?.events, other)
  },

  'only the one log is removed': async place => {
    await store(place, logOf(...turnOf('a')))
    const near = headerOf('s10')
    const writer = place.open().begin(near)
    const { sha256 } = await writer.putArtifact(new Uint8Array([3]), 'image/png')
    await writer.append(logOf(...turnOf('b')))
    await writer.close()
    const medium = place.open()
    assert.equal(await medium.remove(id), true)
    assert.deepEqual(await medium.list().then(rows => rows.map(row => row.id)), [near.id])
    assert.deepEqual([...((await medium.artifact(near.id, sha256)) ?? [])], [3])
    assert.equal((await medium.read(near.id))?.events.length, 6)
  },

  'a log that somebody has open is not removed, nor when it is called off': async place => {
    const events = logOf(...turnOf('a'))
    const writer = place.open().begin(header)
    await writer.append(events.slice(0, 3))
    const medium = place.open()
    await assert.rejects(medium.remove(id), { code: 'SESSION_HELD' })
    await writer.append(events.slice(3))
    await writer.close()
    const reason = new Error('changed my mind')
    await assert.rejects(medium.remove(id, { signal: AbortSignal.abort(reason) }), reason)
    assert.deepEqual((await medium.read(id))?.events, events)
  },

  'who has a log open is told until it is closed': async place => {
    const medium = place.open()
    assert.equal(await medium.holder(id), undefined)
    const writer = place.open().begin(header)
    await writer.append(logOf(...turnOf('a')))
    assert.equal((await medium.holder(id))?.pid, place.pid)
    assert.deepEqual(await medium.holder(id), (await medium.read(id))?.holder)
    await writer.close()
    assert.equal(await medium.holder(id), undefined)
  },

  'watching a log changes nothing, and may end twice': async place => {
    await store(place, logOf(...turnOf('a')))
    const medium = place.open()
    const before = await medium.revision(id)
    const stop = medium.watch?.(id, () => {})
    assert.equal(await medium.revision(id), before)
    stop?.()
    stop?.()
    const missing = medium.watch?.(SessionId('nobody'), () => {})
    missing?.()
    assert.equal((await medium.list()).length, 1)
  },

  'a sound log has no problems, though somebody is writing it': async place => {
    const medium = place.open()
    await assert.rejects(medium.verify(id), { code: 'SESSION_NOT_FOUND' })
    const events = everyType()
    const writer = place.open().begin(header)
    await writer.append(events.slice(0, 9))
    const open = await medium.verify(id)
    assert.deepEqual([open.problems, open.events], [[], 9])
    await writer.append(events.slice(9))
    await writer.close()
    const before = await medium.revision(id)
    const report = await medium.verify(id)
    assert.deepEqual(report.header, header)
    assert.equal(report.events, events.length)
    assert.ok(report.bytes > 0)
    assert.deepEqual(report.problems, [])
    assert.equal(await medium.revision(id), before)
  },

  'a sound log is not repaired, nor one that somebody has open': async place => {
    const medium = place.open()
    await assert.rejects(medium.repair(id), { code: 'SESSION_NOT_FOUND' })
    const events = logOf(...turnOf('a'))
    const writer = place.open().begin(header)
    await writer.append(events)
    await assert.rejects(medium.repair(id), { code: 'SESSION_HELD' })
    await writer.close()
    const before = await medium.revision(id)
    assert.deepEqual(await medium.repair(id), { events: 6, branches: [] })
    assert.equal(await medium.revision(id), before)
    assert.deepEqual((await medium.read(id))?.events, events)
  },

  'a damaged log shows what is before and behind, and names where': async place => {
    if (place.damage === undefined) return
    const events = await storeDamaged(place)
    const medium = place.open()
    const log = await medium.read(id)
    assert.deepEqual(log?.events, events.slice(0, 4))
    const { shown, gaps } = await streamed(medium)
    assert.deepEqual([...shown, ...lostOf(events, shown)].toSorted(bySeq), events)
    assert.deepEqual(
      gaps,
      log?.gaps.map(({ fromSeq, toSeq, bytes, reason }) => ({ fromSeq, toSeq, bytes, reason })),
    )
    assert.equal(gaps.length, 1)
    assert.ok((gaps[0]?.fromSeq ?? 0) === 4 && shown.some(({ seq }) => seq === 11))
    assert.deepEqual((await streamed(medium, { toSeq: 2 })).gaps, [])
    const report = await medium.verify(id)
    assert.ok((report?.problems.length ?? 0) > 0)
    assert.equal(report?.problems[0]?.seq, 4)
    assert.match(report?.problems[0]?.code ?? '', /^[A-Z][A-Z_]+$/)
    await assert.rejects(medium.resume(id), { code: 'SESSION_DAMAGED' })
  },

  'a repaired log is the sound beginning, can be continued, and the old one is kept': async place => {
    if (place.damage === undefined) return
    const events = await storeDamaged(place)
    const medium = place.open()
    const before = await medium.revision(id)
    const result = await medium.repair(id)
    assert.ok(result?.kept !== undefined && result.kept !== '')
    assert.deepEqual([result.events, result.branches], [4, []])
    assert.notEqual(await medium.revision(id), before)
    assert.deepEqual((await medium.verify(id))?.problems, [])
    const log = await medium.read(id)
    assert.deepEqual([log?.header, log?.events, log?.gaps], [header, events.slice(0, 4), []])
    const { writer } = await place.open().resume(id)
    await writer.append(events.slice(4))
    await writer.close()
    assert.deepEqual((await medium.read(id))?.events, events)
    assert.equal((await medium.list()).length, 1)
  },

  'a damaged log can be removed': async place => {
    if (place.damage === undefined) return
    await storeDamaged(place)
    const medium = place.open()
    assert.equal(await medium.remove(id), true)
    assert.deepEqual(await medium.list(), [])
  },

  'a closed writer goes on where nobody wrote meanwhile, and nowhere else': async place => {
    const events = logOf(...turnOf('a'), ...turnOf('b', 2))
    await store(place, events.slice(0, 2))
    const { writer } = await place.open().resume(id)
    const reopen = writer.reopen?.bind(writer)
    if (reopen === undefined) return
    await writer.close()
    assert.equal(await reopen(), true)
    await assert.rejects(place.open().resume(id), { code: 'SESSION_HELD' })
    await writer.append(events.slice(2, 4))
    await writer.close()
    const other = await place.open().resume(id)
    assert.equal(await reopen(), false)
    await other.writer.close()
    assert.equal(await reopen(), true)
    await writer.close()
    const third = await place.open().resume(id)
    await third.writer.append(events.slice(4, 6))
    await third.writer.close()
    assert.equal(await reopen(), false)
    const fourth = await place.open().resume(id)
    assert.equal(fourth.log.events.length, 6)
    await fourth.writer.close()
    await place.open().remove(id)
    assert.equal(await reopen(), false)
    assert.deepEqual(await place.open().list(), [])
  },
}

const none: Streamed = { shown: [], gaps: [] }

interface Streamed {
  readonly shown: readonly SessionEvent[]
  readonly gaps: readonly StoredBatch['gap'][]
}

async function streamed(medium: Medium, options: StreamOptions = {}): Promise<Streamed> {
  const batches = await Array.fromAsync(medium.stream(id, options))
  const shown = batches.flatMap(({ events }) => events)
  return { shown, gaps: batches.flatMap(({ gap }) => (gap === undefined ? [] : [gap])) }
}

/** Stores a log, with a write ending before each event of `cuts`. */
async function store(
  place: StorePlace,
  events: readonly SessionEvent[],
  cuts: readonly number[] = [],
): Promise<void> {
  const writer = place.open().begin(header)
  const ends = [...cuts, events.length]
  for (const [index, end] of ends.entries()) await writer.append(events.slice(ends[index - 1] ?? 0, end))
  await writer.close()
}

/** A log of three writes, the second of which begins with event 4 and has lost it. */
async function storeDamaged(place: StorePlace): Promise<readonly SessionEvent[]> {
  const events = logOf(...turnOf('a'), ['user/message', userFact('between')], ...turnOf('b', 2))
  await store(place, events, [4, 8])
  await place.damage?.(id, 4)
  return events
}

function lostOf(events: readonly SessionEvent[], shown: readonly SessionEvent[]): readonly SessionEvent[] {
  const seqs = new Set(shown.map(({ seq }) => seq))
  return events.filter(({ seq }) => !seqs.has(seq))
}

function bySeq(a: SessionEvent, b: SessionEvent): number {
  return a.seq - b.seq
}
