import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { FinishReason, StreamChunk, TokenUsage } from '@dsh/protocol'
import { answerFact, given, logOf, textFact } from '../../testing/given.ts'
import type { Draft } from '../../testing/given.ts'
import { Session, tokenUsage } from './index.ts'

function step(number: number): Draft {
  return ['step/start', { turn: 1, step: number }]
}

function chunk(each: StreamChunk): Draft {
  return ['assistant/chunk', { turn: 1, step: 1, chunk: each }]
}

function told(inputTokens: number, rest: Partial<TokenUsage> = {}): Draft {
  return chunk({ type: 'usage', usage: { inputTokens, outputTokens: 1, ...rest } })
}

function finish(kind: 'stop' | 'error'): Draft {
  const failure = { message: 'no', code: 'SERVER' }
  const reason: FinishReason = kind === 'stop' ? { kind } : { kind, failure }
  return chunk({ type: 'finish', reason })
}

function answer(inputTokens: number): Draft {
  const usage = { inputTokens, outputTokens: 1 }
  return ['assistant/message', { ...answerFact('a'), usage }]
}

function usageOf(...drafts: readonly Draft[]): { total: TokenUsage; step: TokenUsage } {
  const { total, step: last } = given(...drafts)
    .when(() => {})
    .session.fold(tokenUsage)
  return { total, step: last }
}

test('each request is counted once, whether its stream or its message tells what it took', () => {
  assert.deepEqual(usageOf(step(1)), {
    total: { inputTokens: 0, outputTokens: 0 },
    step: { inputTokens: 0, outputTokens: 0 },
  })
  assert.deepEqual(
    usageOf(
      step(1),
      told(10, { cacheReadTokens: 5 }),
      finish('stop'),
      answer(10),
      step(2),
      told(20, { cacheReadTokens: 6, reasoningTokens: 1 }),
      answer(20),
    ),
    {
      total: { inputTokens: 30, outputTokens: 2, cacheReadTokens: 11, reasoningTokens: 1 },
      step: { inputTokens: 20, outputTokens: 1, cacheReadTokens: 6, reasoningTokens: 1 },
    },
  )
  assert.deepEqual(usageOf(step(1), answer(7), step(2), answer(8)).total, {
    inputTokens: 15,
    outputTokens: 2,
  })
})

test('failed attempts are paid for too, and do not count for the one that follows', () => {
  assert.equal(usageOf(step(1), told(1), finish('error'), told(2), answer(2)).total.inputTokens, 3)
  assert.equal(usageOf(step(1), told(1), finish('error'), answer(4)).total.inputTokens, 5)
})

test('an attempt that was cancelled before its message does not hide the next step', () => {
  assert.equal(usageOf(step(1), told(1), step(2), answer(4)).total.inputTokens, 5)
})

test('a fork counts what it asked for itself', () => {
  const seed = logOf(step(1), told(10), ['assistant/chunk', textFact('a')], answer(10))
  const header = {
    version: 0,
    id: SessionId('f'),
    createdAt: 1,
    parentSession: SessionId('p'),
    seedLength: 4,
  }
  const fork = Session.create(header.id, seed, header)
  fork.append('step/start', { turn: 2, step: 1 })
  fork.appendChunk(2, 1, { type: 'usage', usage: { inputTokens: 3, outputTokens: 1 } })
  assert.deepEqual(fork.fold(tokenUsage).total, { inputTokens: 3, outputTokens: 1 })
})
