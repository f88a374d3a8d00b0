import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { Session } from '../../core/session/index.ts'
import { answerFact, callFact, resultFact, userFact } from '../../testing/given.ts'
import { cutBefore } from './place.ts'

/** Two turns; the second has two steps with a call each. */
function twoTurns(): Session {
  const session = Session.create(SessionId('s'))
  const append = { surfaceOp: 'append' } as const
  const begin = (turn: number): void => {
    session.append('turn/start', { turn })
    session.append('step/start', { turn, step: 1 })
    session.append('user/message', userFact('go'), append)
  }
  begin(1)
  session.append('assistant/message', answerFact('ok', []), append)
  session.append('step/end', { turn: 1, step: 1 })
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  begin(2)
  for (const step of [1, 2]) {
    if (step > 1) session.append('step/start', { turn: 2, step })
    session.append('assistant/message', answerFact('', [`c${step}`]), append)
    session.append('tool/call', callFact(`c${step}`))
    session.append('tool/result', resultFact(`c${step}`, 'x'), append)
    session.append('step/end', { turn: 2, step })
  }
  return session
}

function seqsOf(session: Session, type: string): readonly number[] {
  return session.events.flatMap(event => (event.type === type ? [event.seq] : []))
}

test('a prompt goes with its turn, and the files to how they were when the turn began', () => {
  const session = twoTurns()
  const [, prompt = -1] = seqsOf(session, 'user/message')
  const [first = -1, start = -1] = seqsOf(session, 'turn/start')
  assert.deepEqual(cutBefore(session, prompt), { boundary: start - 1, openTurn: false, filesAfter: start })
  assert.deepEqual(cutBefore(session, start), { boundary: start - 1, openTurn: false, filesAfter: start })
  assert.deepEqual(cutBefore(session, first), { boundary: -1, openTurn: false, filesAfter: 0 })
})

test('a call goes with its step: what stays is the prompt, or the step before', () => {
  const session = twoTurns()
  const [, prompt = -1] = seqsOf(session, 'user/message')
  const [, one = -1, two = -1] = seqsOf(session, 'step/end')
  const [first = -1, second = -1] = seqsOf(session, 'tool/call')
  assert.deepEqual(cutBefore(session, first), { boundary: prompt, openTurn: true, filesAfter: prompt })
  assert.deepEqual(cutBefore(session, second), { boundary: one, openTurn: true, filesAfter: one })
  assert.equal(cutBefore(session, two).boundary, two)
})

test('between turns the cut is where it is asked for, and an unknown event is refused', () => {
  const session = twoTurns()
  const [end = -1] = seqsOf(session, 'turn/end')
  assert.deepEqual(cutBefore(session, end), { boundary: end, openTurn: false, filesAfter: end })
  for (const seq of [-1, 0.5, session.length, Number.NaN])
    assert.throws(() => cutBefore(session, seq), { code: 'REWIND_BAD_SEQ' })
})

test('every cut leaves a log that a session can begin with', () => {
  const session = twoTurns()
  for (const { seq } of session.events) {
    const { boundary, openTurn } = cutBefore(session, seq)
    const child = session.branch(SessionId(`c${seq}`), boundary + 1, { closeTurn: openTurn })
    const last = child.at(child.length - 1)
    assert.ok(boundary < 0 || last?.type === 'turn/end' || last?.type === 'session/end-seed', `before ${seq}`)
    assert.deepEqual(child.messages, session.messages.slice(0, child.messages.length))
  }
})
