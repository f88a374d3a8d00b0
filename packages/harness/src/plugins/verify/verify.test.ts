import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { constants, zstdCompressSync } from 'node:zlib'
import { MessageId, SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { SessionStore } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import { answerFact, callFact, headerFact, logOf, resultFact, userFact } from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { storeJsonl } from '../store-jsonl/index.ts'
import { verifySession } from './index.ts'

const id = SessionId('s1')
const header = { version: 0, id, createdAt: 1, cwd: '/srv' }
const second = { turn: 1, step: 2 }

const turn: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('hello')],
  ['request/header', headerFact()],
  ['assistant/message', answerFact('I look', ['c1'])],
  ['tool/call', callFact('c1')],
  ['tool/result', resultFact('c1', 'seen')],
  ['step/end', { turn: 1, step: 1 }],
  ['step/start', second],
  ['assistant/message', answerFact('done', [], second)],
  ['step/end', second],
  ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
]

/** A store with `events` as the log of a session, however wrong they are. */
async function setup(t: TestContext, events: readonly SessionEvent[] = logOf(...turn)) {
  const root = mkdtempSync(join(tmpdir(), 'verify-'))
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root })
  t.after(async () => {
    await ctx.dispose()
    rmSync(root, { recursive: true })
  })
  const { sessionPersistence: sessions } = ctx
  const path = sessions.locate(header) ?? ''
  mkdirSync(dirname(path), { recursive: true })
  const first = frame([{ type: 'session', toolStart: true, ...header }])
  const prev = createHash('sha256').update(first).digest('hex').slice(0, 32)
  writeFileSync(path, Buffer.concat([first, frame([{ firstSeq: 0, count: events.length, prev }, ...events])]))
  return { sessions, path }
}

function frame(lines: readonly unknown[]): Buffer {
  const text = lines.map(line => `${JSON.stringify(line)}\n`).join('')
  return zstdCompressSync(text, { params: { [constants.ZSTD_c_checksumFlag]: 1 } })
}

/** The turn with these drafts in place of the `count` from `at` on. */
function turnWith(at: number, count: number, ...drafts: readonly Draft[]): SessionEvent[] {
  return logOf(...turn.toSpliced(at, count, ...drafts))
}

test('a sound session is told with what was counted and made again', async t => {
  const { sessions } = await setup(t)
  assert.deepEqual(await verifySession(sessions, id), {
    id,
    ok: true,
    events: 12,
    frames: 2,
    requests: 2,
    problems: [],
  })
  await assert.rejects(verifySession(sessions, SessionId('none')), { code: 'SESSION_NOT_FOUND' })
})

test('a result that is there twice is named with its seq', async t => {
  const { sessions } = await setup(t, turnWith(7, 0, ['tool/result', resultFact('c1', 'seen again')]))
  const { ok, problems } = await verifySession(sessions, id)
  assert.equal(ok, false)
  assert.deepEqual(problems, [
    {
      code: 'ORDER_BROKEN',
      message: 'event 7 ("tool/result"): no call "c1" waits in this step (enclosure)',
      seq: 7,
      frame: 1,
    },
    { code: 'ANSWERED_TWICE', message: 'event 7: call "c1" has a second result', seq: 7, frame: 1 },
  ])
})

test('a call that the next request leaves without a result is named', async t => {
  const { sessions } = await setup(t, turnWith(6, 1))
  const { problems } = await verifySession(sessions, id)
  assert.deepEqual(
    problems.map(({ code, seq }) => [code, seq]),
    [
      ['ORDER_BROKEN', 6],
      ['UNANSWERED_CALL', 4],
    ],
  )
})

test('an answer to a request that no header tells of is named', async t => {
  const { sessions } = await setup(t, turnWith(3, 1))
  const { requests, problems } = await verifySession(sessions, id)
  assert.equal(requests, 0)
  assert.deepEqual(problems[0], {
    code: 'REQUEST_UNKNOWN',
    message: 'the request of step 1.1 cannot be made again: no header comes before event 3',
    seq: 3,
    frame: 1,
  })
})

test('input that was taken and is not known to have come is named', async t => {
  const claim: Draft = [
    'agent/inbox/spliced',
    { target: 'next-turn', start: 0, removedCount: 1, inserted: [] },
  ]
  const { sessions } = await setup(t, turnWith(1, 0, claim))
  const { problems } = await verifySession(sessions, id)
  assert.deepEqual(problems, [
    {
      code: 'INBOX_BROKEN',
      message: 'event 1 changes "next-turn" up to message 1, and 0 wait there',
      seq: 1,
      frame: 1,
    },
  ])
})

test('an event that the store refuses ends what is checked, and is named once', async t => {
  const bad = { turn: 1, step: 'two' } as never
  const { sessions } = await setup(t, turnWith(8, 1, ['step/start', bad]))
  const { events, requests, problems } = await verifySession(sessions, id)
  assert.deepEqual([events, requests], [12, 1])
  assert.deepEqual(
    problems.map(({ code, message, seq }) => [code, message, seq]),
    [['EVENT_INVALID', 'event 8: event "step/start": step is not a positive integer', 8]],
  )
})

test('a picture that is not there is named once, at the first message that shows it', async t => {
  const attachment = { sha256: 'a'.repeat(64), mediaType: 'image/png', bytes: 3 }
  const picture = (name: string) => ({
    ...userFact('see'),
    id: MessageId(name),
    content: [{ type: 'image', attachment }],
  })
  const drafts = [picture('one'), picture('two')].map(data => ['user/message', data] as unknown as Draft)
  const { sessions } = await setup(t, turnWith(3, 0, ...drafts))
  const { problems } = await verifySession(sessions, id)
  assert.deepEqual(problems, [
    {
      code: 'IMAGE_MISSING',
      message: `a picture of event 3 is missing or damaged: artifact ${attachment.sha256}`,
      seq: 3,
      frame: 1,
    },
  ])
})

test('damage of the file is told with its frame, and what the events before it say is checked all the same', async t => {
  const { sessions, path } = await setup(t)
  const foreign = frame([
    { firstSeq: 12, count: 1, prev: '0'.repeat(32) },
    { type: 'x/y', seq: 12, time: 1, data: {} },
  ])
  writeFileSync(path, foreign, { flag: 'a' })
  const { requests, problems } = await verifySession(sessions, id)
  assert.equal(requests, 2)
  assert.deepEqual(
    problems.map(({ code, frame: at, seq }) => [code, at, seq]),
    [['FRAME_FOREIGN', 2, 12]],
  )
})

test('an unfinished write at the end is no problem, and a type that nobody knows is told as a reason', async t => {
  const strange = { type: 'shelf/note', data: {} }
  const { sessions, path } = await setup(t, turnWith(12, 0, [strange.type, strange.data] as unknown as Draft))
  writeFileSync(path, Buffer.alloc(20, 1), { flag: 'a' })
  const { ok, tornBytes, readOnly } = await verifySession(sessions, id)
  assert.deepEqual([ok, tornBytes], [true, 20])
  assert.match(readOnly ?? '', /events of type "shelf\/note" \(first: 12\), which no loaded plugin declares/)
})

test('a session without a header is one problem', async t => {
  const { sessions, path } = await setup(t)
  truncateSync(path, 0)
  assert.deepEqual(await verifySession(sessions, id), {
    id,
    ok: false,
    events: 0,
    frames: 0,
    requests: 0,
    problems: [{ code: 'HEADER_DAMAGED', message: 'the file is empty', frame: 0, offset: 0 }],
    isDamaged: true,
  })
})
