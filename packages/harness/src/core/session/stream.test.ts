import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { StreamChunk } from '@dsh/protocol'
import { answerFact, headerFact } from '../../testing/given.ts'
import { Session } from './index.ts'

const finish: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }
const failure = { message: 'no', code: 'SERVER' }
const failed: StreamChunk = { type: 'finish', reason: { kind: 'error', failure } }

function text(delta: string, index = 0): StreamChunk {
  return { type: 'text-delta', index, text: delta }
}

/** A session in a step, and a way to stream into it. */
function setup(): { session: Session; stream(...chunks: StreamChunk[]): number[] } {
  const session = Session.create(SessionId('s'))
  session.append('turn/start', { turn: 1 })
  session.append('step/start', { turn: 1, step: 1 })
  return { session, stream: (...chunks) => chunks.map(chunk => session.appendChunk(1, 1, chunk).seq) }
}

test('the stream of an answer is its own chunks, deltas of a block as one', () => {
  const { session, stream } = setup()
  const id = CallId('c')
  stream(text('lost'), failed)
  const sourceEventSeqs = stream(
    { type: 'block-start', index: 0, blockType: 'text' },
    text('a'),
    text('b'),
    { type: 'tool-call-delta', index: 1, id: CallId(''), argumentsDelta: '{' },
    text('c'),
    { type: 'tool-call-delta', index: 1, id, name: '', argumentsDelta: '}' },
    { type: 'tool-call-delta', index: 1, id: CallId(''), name: 'tool', argumentsDelta: '' },
    { type: 'block-end', index: 0, block: { type: 'text', text: 'abc' } },
    finish,
  )
  const { seq } = session.append('assistant/message', answerFact('abc', ['c']), {
    surfaceOp: 'append',
    sourceEventSeqs,
  })
  assert.deepEqual(session.streamOf(seq), [
    { type: 'block-start', index: 0, blockType: 'text' },
    text('abc'),
    { type: 'tool-call-delta', index: 1, id, name: 'tool', argumentsDelta: '{}' },
    { type: 'block-end', index: 0, block: { type: 'text', text: 'abc' } },
    finish,
  ])
})

test('the stream of a failed attempt is found by its finish, and no other attempt is in it', () => {
  const { session, stream } = setup()
  const [, first = 0] = stream(text('one'), failed)
  const [, , second = 0] = stream(text('t'), text('wo'), failed)
  session.append('request/header', headerFact('change'))
  const [, third = 0] = stream(text('three'), failed)
  assert.deepEqual(session.streamOf(first), [text('one'), failed])
  assert.deepEqual(session.streamOf(second), [text('two'), failed])
  assert.deepEqual(session.streamOf(third), [text('three'), failed])
})

test('an answer that does not say where it comes from has no stream, and other events never have one', () => {
  const { session, stream } = setup()
  const { seq } = session.append('assistant/message', answerFact('a'), { surfaceOp: 'append' })
  assert.deepEqual(session.streamOf(seq), [])
  const [delta = 0] = stream(text('a'))
  for (const other of [0, delta, 99]) {
    assert.throws(() => session.streamOf(other), {
      name: 'RangeError',
      message: `event ${other} ends no model stream`,
    })
  }
})
