import assert from 'node:assert/strict'
import { openSync, readFileSync, writeSync, closeSync } from 'node:fs'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { logOf, userFact } from '../../testing/index.ts'
import { headerOf, turnOf } from '../../testing/contracts/store-samples.ts'
import { toHeaderText } from '../persistence/index.ts'
import { setUp, storeLog } from './set-up.ts'

const id = SessionId('s1')
const header = headerOf('s1')

function longLog(count: number): readonly SessionEvent[] {
  return logOf(
    ...Array.from(
      { length: count },
      (_, at) => ['user/message', userFact(`${at} ${'x'.repeat(300)}`)] as const,
    ),
  )
}

async function damaged(t: TestContext, sql: string) {
  const place = setUp(t)
  const events = logOf(...turnOf('a'), ...turnOf('b', 2))
  await storeLog(place, header, events, 4)
  await storeLog(place, headerOf('sound'), events)
  place.tamper(sql)
  return { place, events, medium: place.open() }
}

const row = (seq: number): string => `session = 1 AND seq = ${seq}`

/** What is done to a log of 12 events, and each problem that must be found: its code, its first event, its message. */
const damages: readonly (readonly [
  title: string,
  sql: string,
  problems: readonly (readonly [code: string, seq: number, message: string])[],
])[] = [
  [
    'one flipped bit in an event',
    `UPDATE events SET event = replace(event, '"text":"done"', '"text":"eone"') WHERE ${row(3)}`,
    [['ROW_DAMAGED', 3, 'the row of event 3 does not match its checksum']],
  ],
  [
    'one flipped bit in a checksum',
    `UPDATE events SET chain = replace(chain, substr(chain, 1, 1), 'g') WHERE ${row(3)}`,
    [['ROW_DAMAGED', 3, 'the row of event 3 does not match its checksum']],
  ],
  [
    'text that is no JSON',
    `UPDATE events SET event = substr(event, 2) WHERE ${row(5)}`,
    [['ROW_DAMAGED', 5, 'the row of event 5 is not JSON']],
  ],
  [
    'bytes that are no Zstandard',
    `UPDATE events SET event = x'28b52ffd00' WHERE ${row(5)}`,
    [['ROW_DAMAGED', 5, 'the row of event 5 cannot be decoded']],
  ],
  ['a dropped row', `DELETE FROM events WHERE ${row(5)}`, [['ROW_MISSING', 5, 'event 5 is missing']]],
  [
    'dropped rows at the beginning',
    'DELETE FROM events WHERE session = 1 AND seq < 3',
    [['ROW_MISSING', 0, 'events 0 to 2 are missing']],
  ],
  [
    'dropped rows at the end',
    'DELETE FROM events WHERE session = 1 AND seq > 9',
    [['ROW_MISSING', 10, 'events 10 to 11 are missing']],
  ],
  [
    'two swapped events',
    `UPDATE events SET event = (SELECT event FROM events AS o WHERE o.session = 1 AND o.seq = 11 - events.seq)
     WHERE session = 1 AND seq IN (5, 6)`,
    [['ROW_MISPLACED', 5, 'the row of event 5 holds event 6']],
  ],
  [
    'two swapped rows',
    `UPDATE events SET seq = 1000 WHERE ${row(4)}; UPDATE events SET seq = 4 WHERE ${row(7)};
     UPDATE events SET seq = 7 WHERE ${row(1000)}`,
    [
      ['ROW_MISPLACED', 4, 'the row of event 4 holds event 7'],
      ['ROW_MISPLACED', 7, 'the row of event 7 holds event 4'],
    ],
  ],
  [
    'a row that is there twice',
    `INSERT INTO events SELECT session, 12, event, chain FROM events WHERE ${row(11)}`,
    [['ROW_MISPLACED', 12, 'the row of event 12 holds event 11']],
  ],
  [
    'a row of another log',
    `UPDATE events SET (event, chain) = (SELECT event, chain FROM events AS o WHERE o.session = 2 AND o.seq = 4)
     WHERE ${row(4)}`,
    [['ROW_DAMAGED', 4, 'the row of event 4 does not match its checksum']],
  ],
  [
    'a count that is too small',
    'UPDATE sessions SET length = 8 WHERE key = 1',
    [['ROW_UNCOUNTED', 8, 'the log has more events than its session counts']],
  ],
  [
    'an end that the session does not name',
    `UPDATE sessions SET chain = '${'0'.repeat(32)}' WHERE key = 1`,
    [['END_DAMAGED', 12, 'the log does not end with the event that its session names']],
  ],
  [
    'a header that was changed',
    `UPDATE sessions SET header = replace(header, '/srv/project', '/srv/another') WHERE key = 1`,
    [['ROW_DAMAGED', 0, 'the header or the row of event 0 does not match its checksum']],
  ],
]

for (const [title, sql, expected] of damages) {
  test(`${title}: named with its event, the log is not continued, and the others are sound`, async t => {
    const { events, medium } = await damaged(t, sql)
    const report = await medium.verify(id)
    assert.deepEqual(
      report.problems.map(({ code, seq, message }) => [code, seq, message]),
      expected,
    )
    assert.deepEqual(report.header?.id, id)
    const log = await medium.read(id)
    const first = expected[0]?.[1] ?? 0
    assert.deepEqual(log?.events, events.slice(0, first))
    assert.deepEqual(
      log?.gaps.map(gap => gap.reason),
      expected.map(([, , message]) => message),
    )
    const behind = log?.gaps.flatMap(gap => gap.events) ?? []
    assert.equal(report.events, first + behind.length)
    for (const event of behind) assert.deepEqual(event, events[event.seq])
    await assert.rejects(medium.resume(id), { code: 'SESSION_DAMAGED' })
    assert.equal(await medium.holder(id), undefined)
    assert.deepEqual((await medium.verify(SessionId('sound'))).problems, [])
  })
}

test('the header of another session is refused wherever it is met', async t => {
  const other = toHeaderText(headerOf('s2'))
  const { medium } = await damaged(t, `UPDATE sessions SET header = '${other}' WHERE key = 1`)
  const message = 'its header is that of session "s2"'
  const { problems } = await medium.verify(id)
  assert.deepEqual(problems[0], { code: 'HEADER_FOREIGN', message })
  await assert.rejects(medium.read(id), { code: 'SESSION_DAMAGED', message: new RegExp(message) })
  await assert.rejects(medium.resume(id), { code: 'SESSION_DAMAGED' })
  const rows = await medium.list()
  assert.deepEqual(
    rows.map(each => ('problem' in each ? [each.id, each.problem] : each.id)),
    [['s1', message], 'sound'],
  )
})

test('a session without a readable header is a row with the reason, and can be removed', async t => {
  const { medium } = await damaged(t, "UPDATE sessions SET header = '{' WHERE key = 1")
  assert.deepEqual((await medium.verify(id)).problems[0], {
    code: 'HEADER_DAMAGED',
    message: 'the header is not JSON',
  })
  const [first] = await medium.list()
  assert.equal(first !== undefined && 'problem' in first && first.problem, 'the header is not JSON')
  await assert.rejects(medium.repair(id), { code: 'SESSION_DAMAGED' })
  assert.equal(await medium.remove(id), true)
  assert.equal((await medium.list()).length, 1)
})

test('a session of a newer format is listed as that, can be read, and is not continued', async t => {
  const { medium, place } = await damaged(
    t,
    `UPDATE sessions SET header = replace(header, '"version":0', '"version":9') WHERE key = 1`,
  )
  const text = `the log was written by a newer dsh (format 9, this one knows 0): ${place.path}`
  const [first] = await medium.list()
  assert.equal(first !== undefined && 'problem' in first && first.problem, text)
  await assert.rejects(medium.resume(id), { code: 'SESSION_FORMAT_NEWER', message: text })
})

test('an artifact with other bytes is missing, and found by a check', async t => {
  const place = setUp(t)
  const writer = place.open().begin(header)
  const { sha256 } = await writer.putArtifact(new Uint8Array([1, 2, 3]), 'image/png')
  await writer.append(longLog(2))
  place.tamper("UPDATE artifacts SET body = x'010204'")
  assert.equal(await place.open().artifact(id, sha256), undefined)
  const { problems } = await place.open().verify(id)
  assert.deepEqual(problems, [{ code: 'ARTIFACT_DAMAGED', message: `artifact ${sha256} holds other bytes` }])
  await writer.putArtifact(new Uint8Array([1, 2, 3]), 'image/png')
  assert.deepEqual([...((await writer.getArtifact(sha256)) ?? [])], [1, 2, 3])
  await writer.close()
})

test('a repair keeps the old log and tells what is in it alone', async t => {
  const { events, medium, place } = await damaged(t, `DELETE FROM events WHERE ${row(5)} OR ${row(9)}`)
  const { kept, ...result } = await medium.repair(id)
  assert.equal(kept, `${place.path}, the row of sessions with key 1`)
  assert.deepEqual(result, {
    events: 5,
    branches: [],
    lost: [
      { fromSeq: 5, toSeq: 5, reason: 'event 5 is missing' },
      { fromSeq: 6, toSeq: 8, reason: 'event 5 is missing', isReadable: true },
      { fromSeq: 9, toSeq: 9, reason: 'event 9 is missing' },
      { fromSeq: 10, toSeq: 11, reason: 'event 9 is missing', isReadable: true },
    ],
  })
  assert.deepEqual((await medium.read(id))?.events, events.slice(0, 5))
  const { problems } = await medium.verify(id)
  assert.deepEqual(problems, [])
})

test('nothing is repaired where not even the first event is sound', async t => {
  const { medium } = await damaged(t, `DELETE FROM events WHERE ${row(0)}`)
  const before = await medium.revision(id)
  await assert.rejects(medium.repair(id), { code: 'SESSION_DAMAGED', message: /from the first event on/ })
  assert.equal(await medium.revision(id), before)
  assert.equal(await medium.holder(id), undefined)
})

test('a destroyed page costs the events on it, and nothing before or behind', async t => {
  const place = setUp(t)
  const events = longLog(300)
  await storeLog(place, header, events, 50)
  const page = 4096
  const bytes = readFileSync(place.path)
  const at = bytes.indexOf('"150 xxx')
  const file = openSync(place.path, 'r+')
  writeSync(file, Buffer.alloc(page, 0xff), 0, page, at - (at % page))
  closeSync(file)
  const medium = place.open()
  const log = await medium.read(id)
  const [gap, ...others] = log?.gaps ?? []
  assert.ok(gap !== undefined && others.length === 0)
  assert.equal(gap.reason, 'a page of the database is damaged')
  assert.ok(
    gap.fromSeq <= 150 && gap.toSeq >= 150 && gap.toSeq - gap.fromSeq < 30,
    `${gap.fromSeq}–${gap.toSeq}`,
  )
  assert.deepEqual(log?.events, events.slice(0, gap.fromSeq))
  assert.deepEqual(gap.events, events.slice(gap.toSeq + 1))
  const { problems } = await medium.verify(id)
  assert.deepEqual(
    problems.map(({ code, seq }) => [code, seq]),
    [['PAGE_DAMAGED', gap.fromSeq]],
  )
  assert.equal((await medium.repair(id)).events, gap.fromSeq)
  assert.deepEqual((await medium.read(id))?.events, events.slice(0, gap.fromSeq))
})

test('a flipped bit anywhere in the file is found, or was in nothing of a session', async t => {
  const place = setUp(t)
  const events = longLog(12)
  await storeLog(place, header, events)
  const sound = readFileSync(place.path)
  let found = 0
  for (let at = 100; at < sound.length; at += 397) {
    const changed = Buffer.from(sound)
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 8)), at)
    const file = openSync(place.path, 'r+')
    writeSync(file, changed, 0, changed.length, 0)
    closeSync(file)
    const medium = place.open()
    const report = await medium.verify(id).catch((error: { code: string }) => error.code)
    const isQuiet = typeof report !== 'string' && report.problems.length === 0
    if (isQuiet) assert.deepEqual((await medium.read(id))?.events, events, `byte ${at}`)
    else found += 1
    if (typeof report === 'string')
      assert.match(report, /^(STORE_FAILED|SESSION_NOT_FOUND|SESSION_FORMAT_NEWER)$/, `byte ${at}`)
    await medium.close()
  }
  assert.ok(found > 10, `${found} found`)
})
