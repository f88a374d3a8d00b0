import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TurnEndReason } from '@dsh/protocol'
import { endLine, exitCodeOf, failedResult, resultOf, summaryLine } from './outcome.ts'
import type { RunFacts } from './outcome.ts'

function facts(changes: Partial<RunFacts> = {}): RunFacts {
  return {
    sessionId: '0abc',
    end: { kind: 'completed' },
    usage: { inputTokens: 0, outputTokens: 0 },
    changedFiles: [],
    wasDenied: false,
    ...changes,
  }
}

function failed(code: string): TurnEndReason {
  return { kind: 'error', error: { code, message: 'why' } }
}

test('the exit code tells how the run ended', () => {
  const ends: [TurnEndReason, number][] = [
    [{ kind: 'completed' }, 0],
    [{ kind: 'blocked' }, 1],
    [{ kind: 'max-tokens' }, 1],
    [{ kind: 'interrupted' }, 1],
    [{ kind: 'aborted', reason: { kind: 'user' } }, 130],
    [failed('AUTH'), 3],
    [failed('MISSING_CREDENTIAL'), 3],
    [failed('INVALID_CREDENTIAL'), 3],
    [failed('RATE_LIMIT'), 5],
    [failed('TRANSPORT'), 5],
    [failed('MALFORMED_RESPONSE'), 5],
    [failed('UNKNOWN'), 1],
  ]
  for (const [end, code] of ends) assert.equal(exitCodeOf(facts({ end })), code, JSON.stringify(end))
})

test('a signal wins over a failure, a failure over a refusal, a refusal over a bad end', () => {
  const failure = { code: 'STORE_FAILED', message: 'disk full' }
  assert.equal(exitCodeOf(facts({ stopCode: 143, failure, end: failed('SERVER') })), 143)
  assert.equal(exitCodeOf(facts({ failure, wasDenied: true })), 1)
  assert.equal(exitCodeOf(facts({ end: failed('SERVER'), wasDenied: true })), 5)
  assert.equal(exitCodeOf(facts({ wasDenied: true })), 4)
  assert.equal(exitCodeOf(facts({ end: { kind: 'max-tokens' }, wasDenied: true })), 4)
})

test('the last line of JSON has the five fields, and an error where there is one', () => {
  assert.equal(
    JSON.stringify(resultOf(facts({ changedFiles: ['a'] }))),
    '{"status":"completed","sessionId":"0abc","usage":{"inputTokens":0,"outputTokens":0},"cost":null,"changedFiles":["a"]}',
  )
  assert.deepEqual(resultOf(facts({ end: failed('SERVER') })).error, { code: 'SERVER', message: 'why' })
  assert.deepEqual(failedResult({ code: 'NO_FOLDER', message: 'gone' }), {
    status: 'error',
    sessionId: null,
    usage: { inputTokens: 0, outputTokens: 0 },
    cost: null,
    changedFiles: [],
    error: { code: 'NO_FOLDER', message: 'gone' },
  })
})

test('a person is told of a bad end and of a refusal', () => {
  assert.equal(endLine(facts()), undefined)
  assert.equal(
    endLine(facts({ wasDenied: true })),
    'something was denied because nobody could be asked; --yes allows it, or, beyond the sandbox, a rule: dsh permission --help',
  )
  assert.equal(endLine(facts({ end: { kind: 'aborted', reason: { kind: 'user' } } })), 'cancelled')
})

test('the last line for a person counts, names and tells how to go on', () => {
  assert.equal(
    summaryLine(facts(), 'dsh'),
    'session 0abc · 0 tokens in, 0 out · no files changed · go on: dsh run -r 0abc "…"',
  )
  const usage = { inputTokens: 1000, outputTokens: 20, cacheReadTokens: 234, cacheWriteTokens: 1 }
  const changedFiles = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  assert.equal(
    summaryLine(facts({ usage, changedFiles }), 'node bin.js'),
    'session 0abc · 1,235 tokens in (234 cached), 20 out · changed a, b, c, d, e and 2 more · go on: node bin.js run -r 0abc "…"',
  )
})
