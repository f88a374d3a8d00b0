import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import { resolveRetryPolicy, retryDelayMs } from './index.ts'
import type { RetryPolicySettings } from './index.ts'

test('a route that says nothing is tried five times more on the transient codes', () => {
  assert.deepEqual(resolveRetryPolicy(), {
    mode: 'normal',
    maxRetries: 5,
    retryableCodes: ['EMPTY_RESPONSE', 'RATE_LIMIT', 'SERVER', 'STREAM_CLOSED', 'TIMEOUT', 'TRANSPORT'],
    initialDelayMs: 500,
    maxDelayMs: 10_000,
    jitterRatio: 0.1,
  })
})

test('what a route says replaces the default, detached and frozen', () => {
  const retryableCodes = ['SERVER']
  const policy = resolveRetryPolicy({ maxRetries: 0, retryableCodes, maxDelayMs: 600 })
  retryableCodes.push('TIMEOUT')
  assert.deepEqual(policy, {
    mode: 'normal',
    maxRetries: 0,
    retryableCodes: ['SERVER'],
    initialDelayMs: 500,
    maxDelayMs: 600,
    jitterRatio: 0.1,
  })
  assert.ok(Object.isFrozen(policy) && policy.mode === 'normal' && Object.isFrozen(policy.retryableCodes))
})

test('a route that is tried for ever has no use for a budget', () => {
  const settings: RetryPolicySettings = { mode: 'always', maxRetries: 3, retryableCodes: [], jitterRatio: 0 }
  assert.deepEqual(resolveRetryPolicy(settings), {
    mode: 'always',
    initialDelayMs: 500,
    maxDelayMs: 10_000,
    jitterRatio: 0,
  })
})

test('a wrong setting is named', () => {
  const bad: readonly [unknown, RegExp][] = [
    [{ delay: 1 }, /no setting "delay"/],
    [{ ['__proto__']: 1, toString: 1 }, /no setting "(__proto__|toString)"/],
    [{ mode: 'often' }, /retry mode "often"/],
    [{ maxRetries: -1 }, /maxRetries -1/],
    [{ maxRetries: 1.5 }, /maxRetries 1.5/],
    [{ initialDelayMs: 0 }, /initialDelayMs 0/],
    [{ initialDelayMs: NaN }, /initialDelayMs NaN/],
    [{ maxDelayMs: MAX_TIMER_DELAY_MS + 1 }, /maxDelayMs 2147483648 is not above 0 and at most 2147483647/],
    [{ initialDelayMs: 20_000 }, /initialDelayMs 20000 is above maxDelayMs 10000/],
    [{ jitterRatio: 1.1 }, /jitterRatio 1.1/],
    [{ retryableCodes: 'SERVER' }, /retryableCodes must be a list/],
    [{ retryableCodes: [''] }, /which is no code/],
    [{ retryableCodes: ['A', 'A'] }, /names a code twice/],
    [null, /must be an object/],
  ]
  for (const [settings, message] of bad) {
    assert.throws(() => resolveRetryPolicy(settings as RetryPolicySettings), message)
  }
})

test('the wait doubles up to its limit, and jitter never takes it beyond', () => {
  const policy = resolveRetryPolicy({ initialDelayMs: 100, maxDelayMs: 1000, jitterRatio: 0.2 })
  const middle = [1, 2, 3, 4, 5, 6, 2000].map(retry => retryDelayMs(policy, retry, 0.5))
  assert.deepEqual(middle, [100, 200, 400, 800, 1000, 1000, 1000])
  assert.equal(retryDelayMs(policy, 1, 0), 80)
  assert.equal(retryDelayMs(policy, 1, 0.999_999), 120)
  assert.equal(retryDelayMs(policy, 5, 0), 800)
  assert.equal(retryDelayMs(policy, 5, 0.999_999), 1000)
  const tiny = resolveRetryPolicy({ initialDelayMs: 0.1, maxDelayMs: 1, jitterRatio: 1 })
  assert.equal(retryDelayMs(tiny, 1, 0), 1)
})
