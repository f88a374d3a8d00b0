import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { placeOf, requestsOf } from '@dsh/harness/plugins/time-travel'
import { Session } from '@dsh/harness/session'
import { answerFact, headerFact, logOf, textFact, userFact } from '@dsh/harness/testing'
import { requestOf, seqOf } from './places.ts'

const failure = { code: 'SERVER', message: 'down' }
const log = logOf(
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('hi')],
  ['request/header', headerFact()],
  ['assistant/chunk', { turn: 1, step: 1, chunk: { type: 'finish', reason: { kind: 'error', failure } } }],
  ['assistant/chunk', textFact('ok')],
  ['assistant/message', answerFact('ok')],
  ['step/end', { turn: 1, step: 1 }],
  ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
)
const id = SessionId('s1')
const session = Session.fromRestore(id, log, { version: 0, id, createdAt: 0 }, { readOnly: 'test' })

test('an event is named by its number, with # or e before it', () => {
  assert.deepEqual(
    ['3', '#3', 'e3'].map(word => seqOf(word, session, 'dsh')),
    [3, 3, 3],
  )
  for (const word of ['9', '-1', '3.5', 'x3', '', '1e3'])
    assert.throws(() => seqOf(word, session, 'dsh session at s1'), {
      code: 'UNKNOWN_EVENT',
      message: `session s1 has no event "${word}"; it has 0 to 8`,
      fix: 'dsh session at s1 8',
    })
  const empty = Session.create(SessionId('s2'))
  assert.throws(() => seqOf('0', empty, 'dsh'), {
    message: 'session s2 has no event "0"; it has none',
    fix: 'dsh session ls',
  })
})

test('a request is named by its step, its attempt, its number or an event of it', () => {
  const requests = requestsOf(session)
  const found = (word: string): string => placeOf(requestOf(word, { session, requests, command: 'dsh' }))
  const cases = {
    '1.1': '1.1.2',
    '1.1.1': '1.1',
    '1.1.2': '1.1.2',
    '1': '1.1',
    '2': '1.1.2',
    '#4': '1.1',
    e8: '1.1.2',
  }
  for (const [word, place] of Object.entries(cases)) assert.equal(found(word), place, word)
  assert.throws(() => found('2.1'), {
    code: 'UNKNOWN_REQUEST',
    message: 'session s1 has no request "2.1"; it has 2: 1.1 to 1.1.2',
    fix: 'dsh 1.1.2',
  })
  assert.throws(() => requestOf('1', { session, requests: [], command: 'dsh' }), {
    message: 'session s1 has no request "1"; nothing was asked in it',
    fix: 'dsh session show s1',
  })
})
