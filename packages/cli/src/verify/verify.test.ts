import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { repairLines, reportLines } from './text.ts'

const id = SessionId('s1')
const sound = { id, ok: true, events: 1214, frames: 37, requests: 1, problems: [] }

test('a sound session is one line of counts', () => {
  assert.deepEqual(reportLines(sound), ['s1  chain ok · 1,214 events · 37 frames · 1 request rebuilt'])
  assert.deepEqual(reportLines({ ...sound, frames: 0 }), ['s1  chain ok · 1,214 events · 1 request rebuilt'])
  assert.deepEqual(reportLines({ ...sound, tornBytes: 20, readOnly: 'why' }).slice(1), [
    '  20 bytes of an unfinished write at the end: no damage, the next run puts them aside',
    '  read-only: why',
  ])
})

test('each problem is a line with its code and place, however long its name, and then what mends it', () => {
  const problems = [
    { code: 'FRAME_DAMAGED', message: 'bad\n\u001b[31m', frame: 2, seq: 3, offset: 412 },
    { code: 'ORDER_BROKEN', message: 'twice', frame: 1, seq: 7 },
    { code: 'STORE_FAILED', message: 'no' },
  ]
  assert.deepEqual(reportLines({ ...sound, ok: false, problems, isDamaged: true }), [
    's1  3 problems · 1,214 events · 37 frames · 1 request rebuilt',
    '  FRAME_DAMAGED at frame 2, event 3, byte 412: bad ⏎ ␛[31m',
    '  ORDER_BROKEN at frame 1, event 7: twice',
    '  STORE_FAILED: no',
    '  dsh session repair s1 puts what is sound in its place and keeps the old log',
  ])
  const foreign = [{ code: 'HEADER_FOREIGN', message: 'another', frame: 0, offset: 0 }]
  assert.deepEqual(reportLines({ ...sound, ok: false, problems: foreign }).slice(1), [
    '  HEADER_FOREIGN at frame 0, byte 0: another',
  ])
})

test('the way out is a fork before an event that is wrong, and may be a removal where there is no header', () => {
  const wrong = [{ code: 'EVENT_INVALID', message: 'event 7: it has no id', frame: 1, seq: 7 }]
  assert.deepEqual(reportLines({ ...sound, ok: false, problems: wrong }).slice(2), [
    '  dsh session fork s1 6 makes a session of the events before event 7',
  ])
  assert.equal(reportLines({ ...sound, ok: false, problems: [{ ...wrong[0], seq: 0 } as never] }).length, 2)
  const empty = [{ code: 'HEADER_DAMAGED', message: 'the file is empty', frame: 0, offset: 0 }]
  assert.deepEqual(
    reportLines({ ...sound, frames: 0, events: 0, ok: false, problems: empty, isDamaged: true }).slice(2),
    [
      '  dsh session repair s1 mends a header with one flipped bit; where that fails, dsh session rm s1 removes the log',
    ],
  )
})

test('a repair tells what there is now, where the old log is, and what became of the rest', () => {
  assert.deepEqual(repairLines('s1', { events: 1, branches: [] }), ['session s1 needs no repair: 1 event'])
  const header = { version: 0, id: SessionId('s1-branch-ab'), createdAt: 1, parentSession: id, seedLength: 3 }
  const lost = [
    { fromSeq: 3, toSeq: 3, reason: 'a frame does not match its checksum' },
    { fromSeq: 4, toSeq: 9, reason: 'a frame does not match its checksum', isReadable: true },
  ]
  const branches = [{ header, events: 5 }]
  assert.deepEqual(repairLines('s1', { kept: '/srv/old', events: 3, lost, branches }), [
    'session s1 is repaired: 3 events',
    'the old log is /srv/old',
    'event 3 is lost: a frame does not match its checksum',
    'events 4 to 9 are in the old log alone, since no session can begin there',
    'another program wrote behind event 2: session s1-branch-ab, 5 events',
  ])
  assert.deepEqual(repairLines('s1', { kept: '/srv/old', events: 9, mended: 1, branches: [] }).slice(2), [
    '1 flipped bit put right',
  ])
})
