import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { ContentBlock, StreamChunk } from '@dsh/protocol'
import { fail, text, toolCalls } from '../../plugins/llm-scripted/index.ts'
import { afterChunk, checkStream, chunkProblem, streamStart } from './stream-grammar.ts'

const start = (index: number, blockType: ContentBlock['type'] = 'text'): StreamChunk => ({
  type: 'block-start',
  index,
  blockType,
})
const delta = (index: number): StreamChunk => ({ type: 'text-delta', index, text: 'x' })
const thought = (index: number): StreamChunk => ({ type: 'reasoning-delta', index, text: 'x' })
const args = (index: number): StreamChunk => ({
  type: 'tool-call-delta',
  index,
  id: CallId('c'),
  argumentsDelta: '',
})
const end = (index: number): StreamChunk => ({ type: 'block-end', index, block: { type: 'text', text: 'x' } })
const usage: StreamChunk = { type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } }
const stopped: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }
const failed: StreamChunk = {
  type: 'finish',
  reason: { kind: 'error', failure: { message: 'x', code: 'SERVER' } },
}

test('well formed streams have no problem', () => {
  const streams = [
    text('hello'),
    text(''),
    toolCalls([
      { name: 'a', args: {} },
      { name: 'b', args: {} },
    ]),
    fail('SERVER'),
    [stopped],
    [start(0), start(1, 'reasoning'), thought(1), delta(0), end(0), failed],
  ]
  for (const stream of streams) assert.deepEqual(checkStream(stream), [])
})

test('each breach is named once, at its chunk', () => {
  const cases: readonly [readonly StreamChunk[], readonly string[]][] = [
    [[], ['the stream ended without a finish']],
    [[start(0), delta(0)], ['the stream ended without a finish']],
    [[delta(0), stopped], ['chunk 0: text-delta for block 0, which is not open']],
    [[end(3), stopped], ['chunk 0: block-end for block 3, which is not open']],
    [[start(0), start(0), end(0), stopped], ['chunk 1: block 0 starts while it is open']],
    [[start(0), end(0), start(0), end(0), stopped], ['chunk 2: block 0 starts again']],
    [[start(0), end(0), delta(0), stopped], ['chunk 2: text-delta for block 0, which is not open']],
    [
      [start(0), thought(0), end(0), stopped],
      ['chunk 1: reasoning-delta of "reasoning" for block 0, which is "text"'],
    ],
    [
      [start(0), args(0), end(0), stopped],
      ['chunk 1: tool-call-delta of "tool-call" for block 0, which is "text"'],
    ],
    [
      [start(0, 'reasoning'), end(0), stopped],
      ['chunk 1: block-end of "text" for block 0, which is "reasoning"'],
    ],
    [
      [start(-1), end(-1), stopped],
      ['chunk 0: block-start with index -1', 'chunk 1: block-end with index -1'],
    ],
    [[usage, usage, stopped], ['chunk 1: a second usage']],
    [[stopped, usage], ['chunk 1: usage behind the finish']],
    [[stopped, failed], ['chunk 1: finish behind the finish']],
    [[start(0), start(2), stopped], ['chunk 2: finish "stop" while block 0, 2 is open']],
  ]
  for (const [stream, problems] of cases) assert.deepEqual(checkStream(stream), problems)
})

test('checking is pure: a state can be gone on from twice', () => {
  const open = afterChunk(streamStart, start(0))
  assert.equal(afterChunk(open, delta(0)), open)
  assert.equal(chunkProblem(afterChunk(open, end(0)), stopped), undefined)
  assert.equal(chunkProblem(open, stopped), 'finish "stop" while block 0 is open')
  assert.equal(streamStart.open.size, 0)
})
