import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmFailure } from '@dsh/protocol'
import { HarnessError } from '../../kernel/index.ts'
import { LlmError, toLlmFailure } from './index.ts'

const whole: LlmFailure = {
  message: 'slow down',
  code: 'RATE_LIMIT',
  status: 429,
  providerRetryAfterMs: 2000,
  requestId: 'req_1',
}
const unreadable: LlmFailure = { message: 'LLM adapter failed', code: 'UNKNOWN' }

test('an LlmError carries its facts, frozen and detached', () => {
  const given = { ...whole }
  const cause = new Error('inner')
  const error = new LlmError(given, { cause })
  given.code = 'CHANGED'
  assert.deepEqual(error.failure, whole)
  assert.ok(Object.isFrozen(error.failure))
  assert.deepEqual(
    [error.name, error.code, error.message, error.cause, error instanceof HarnessError],
    ['LlmError', 'RATE_LIMIT', 'slow down', cause, true],
  )
})

test('an LlmError refuses facts that a log could not hold', () => {
  const bad: readonly [object, RegExp][] = [
    [{ message: 1 }, /message must be a string/],
    [{ code: '' }, /code must be a non-empty string/],
    [{ status: 99 }, /status 99 is not 100–599/],
    [{ status: 600 }, /status 600/],
    [{ status: 429.5 }, /status 429.5/],
    [{ providerRetryAfterMs: 0 }, /providerRetryAfterMs 0 is not a positive number/],
    [{ providerRetryAfterMs: -5 }, /providerRetryAfterMs -5/],
    [{ providerRetryAfterMs: Infinity }, /providerRetryAfterMs null/],
    [{ requestId: 7 }, /requestId must be a string/],
  ]
  for (const [facts, message] of bad) {
    assert.throws(() => new LlmError({ ...whole, ...facts } as LlmFailure), message)
  }
})

test('a thrown error is believed where its own failure is whole and names its own code', () => {
  assert.deepEqual(toLlmFailure(new LlmError(whole)), whole)
  const foreign = Object.assign(new Error('x'), { code: 'RATE_LIMIT', failure: { ...whole, extra: 1 } })
  assert.deepEqual(toLlmFailure(foreign), whole)
})

test('a failure that contradicts its error does not count', () => {
  const other = Object.assign(new Error('x'), { code: 'SERVER', failure: whole })
  assert.deepEqual(toLlmFailure(other), { message: 'x', code: 'UNKNOWN' })
  const broken = Object.assign(new Error('x'), { code: 'RATE_LIMIT', failure: { ...whole, status: 7 } })
  assert.deepEqual(toLlmFailure(broken), { message: 'x', code: 'UNKNOWN' })
  class Inherited extends Error {
    readonly code = 'RATE_LIMIT'
    get failure(): LlmFailure {
      return whole
    }
  }
  assert.deepEqual(toLlmFailure(new Inherited('x')), { message: 'x', code: 'UNKNOWN' })
})

test('a harness error keeps its code, also one of another copy of the kernel', () => {
  assert.deepEqual(toLlmFailure(new HarnessError('NO_DISK', 'disk is full')), {
    message: 'disk is full',
    code: 'NO_DISK',
  })
  class HarnessErrorCopy extends Error {
    static {
      this.prototype.name = 'HarnessError'
    }
    readonly code = 'NO_DISK'
  }
  class Special extends HarnessErrorCopy {}
  assert.deepEqual(toLlmFailure(new Special('full')), { message: 'full', code: 'NO_DISK' })
})

test('everything else is UNKNOWN with what it says', () => {
  const system = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
  assert.deepEqual(toLlmFailure(system), { message: 'read ECONNRESET', code: 'UNKNOWN' })
  assert.deepEqual(toLlmFailure('plain text'), { message: 'plain text', code: 'UNKNOWN' })
  assert.deepEqual(toLlmFailure({ message: 'object' }), { message: 'object', code: 'UNKNOWN' })
  for (const value of [undefined, null, 0, '', false, Symbol('x'), 5n, {}, [], new Error('')]) {
    assert.deepEqual(toLlmFailure(value), unreadable)
  }
})

test('hostile values are survived, and their accessors run once at most', () => {
  const throwing = new Proxy(new Error('x'), {
    getOwnPropertyDescriptor: () => {
      throw new Error('trap')
    },
    get: () => {
      throw new Error('trap')
    },
  })
  assert.deepEqual(toLlmFailure(throwing), unreadable)
  let reads = 0
  const counting = Object.defineProperty({}, 'message', {
    get: () => {
      reads++
      return 'once'
    },
  })
  assert.deepEqual(toLlmFailure(counting), { message: 'once', code: 'UNKNOWN' })
  assert.equal(reads, 1)
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  assert.deepEqual(toLlmFailure(proxy), unreadable)
  const endless: object = new Proxy({}, { getPrototypeOf: () => endless })
  assert.deepEqual(toLlmFailure(Object.assign(Object.create(endless) as object, { code: 'X' })), unreadable)
})
