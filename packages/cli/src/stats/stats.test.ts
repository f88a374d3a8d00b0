import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countOf, noCounts } from '@dsh/harness/plugins/session-projections'
import type { RouteCounts, SessionStats } from '@dsh/harness/plugins/session-projections'
import { sessionLines, totalLines } from './text.ts'
import { Totals } from './totals.ts'

const small: RouteCounts = {
  ...noCounts,
  turns: 1,
  steps: 4,
  requests: 5,
  failures: 1,
  llmMs: 12_340,
  toolMs: 900,
  toolCalls: 3,
  inputTokens: 1000,
  cacheReadTokens: 3000,
  outputTokens: 250,
  reasoningTokens: 50,
}

function statsWith(days: SessionStats['days'], more: Partial<SessionStats> = {}): SessionStats {
  const sums = Object.values(days)
    .flatMap(models => Object.values(models))
    .reduce(countOf, noCounts)
  const { requests: _, failures: __, toolCalls: ___, ...counts } = sums
  const none = { ttftMs: 0, ttftSteps: 0, decodeMs: 0, decodeTokens: 0, tools: {} }
  return { ...none, ...counts, days, ...more }
}

test('one session is told in lines', () => {
  const stats = statsWith(
    { '2026-11-30': { 'deepseek/deepseek-flash': small } },
    {
      ttftMs: 2400,
      ttftSteps: 2,
      decodeMs: 10_000,
      decodeTokens: 620,
      tools: {
        read: { calls: 2, errors: 0, ms: 12 },
        'bash\u001b[31m': { calls: 1, errors: 1, ms: 888 },
      },
    },
  )
  assert.deepEqual(sessionLines({ id: '0abc', title: 'Fix\nit', folder: '/srv/app' }, stats), [
    '0abc  Fix ⏎ it',
    '  folder   /srv/app',
    '  turns    1, with 4 steps',
    '  model    5 requests, 1 failed · 12.3 s · first token after 1.2 s · 62 tokens a second',
    '  tokens   4,000 tokens in (75 % from the cache) · 250 out (50 to think)',
    '  tools    3 calls, 1 failed · 900 ms',
    '    bash␛[31m  1 call, 1 failed · 888 ms',
    '    read       2 calls · 12 ms',
  ])
})

test('a session of nothing, and several days of one', () => {
  assert.deepEqual(sessionLines({ id: '0abc' }, statsWith({})), [
    '0abc',
    '  turns    0, with 0 steps',
    '  model    0 requests · 0 ms',
    '  tokens   0 tokens in · 0 out',
  ])
  const days = { '2026-11-29': { 'a/x': small }, '2026-11-30': { 'a/x': small } }
  assert.deepEqual(sessionLines({ id: '0abc' }, statsWith(days)).slice(-4), [
    '',
    'day (UTC) and model  turns  steps  tokens in  cached  tokens out  model time  tool time',
    '2026-11-29 a/x           1      4      4,000    75 %         250      12.3 s     900 ms',
    '2026-11-30 a/x           1      4      4,000    75 %         250      12.3 s     900 ms',
  ])
})

test('all sessions are summed by day, model and folder, the most first', () => {
  const totals = new Totals()
  const more = { ...small, outputTokens: 1_000_000 }
  totals.add(statsWith({ '2026-11-29': { 'a/x': small }, '2026-11-30': { 'b/y': more } }), '/srv/one')
  totals.add(statsWith({ '2026-11-30': { 'a/x': small } }), '/srv/应用')
  totals.add(statsWith({}), '/srv/idle')
  assert.deepEqual(totalLines(totals), [
    '3 sessions · 3 turns · 12 steps · 12,000 tokens in (75 % from the cache) · 1,000,500 out (150 to think)',
    '',
    'day (UTC)   turns  steps  tokens in  cached  tokens out  model time  tool time',
    '2026-11-30      2      8      8,000    75 %   1,000,250      24.7 s      1.8 s',
    '2026-11-29      1      4      4,000    75 %         250      12.3 s     900 ms',
    '',
    'model  turns  steps  tokens in  cached  tokens out  model time  tool time',
    'b/y        1      4      4,000    75 %   1,000,000      12.3 s     900 ms',
    'a/x        2      8      8,000    75 %         500      24.7 s      1.8 s',
    '',
    'folder     turns  steps  tokens in  cached  tokens out  model time  tool time',
    '/srv/one       2      8      8,000    75 %   1,000,250      24.7 s      1.8 s',
    '/srv/应用      1      4      4,000    75 %         250      12.3 s     900 ms',
  ])
  assert.deepEqual(totalLines(new Totals()), ['0 sessions · 0 turns · 0 steps · 0 tokens in · 0 out'])
})
