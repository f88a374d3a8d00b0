import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorCode } from './error-code.ts'

test('the code of an error is the first one in its chain of causes, or of the first error it is made of', () => {
  const broken = Object.assign(new Error('broken'), { code: 'ECONNRESET' })
  const failed = new TypeError('fetch failed', { cause: broken })
  const all = new AggregateError([broken, Object.assign(new Error(''), { code: 'EPIPE' })])
  for (const error of [broken, failed, new Error('', { cause: failed }), new Error('', { cause: all })])
    assert.equal(errorCode(error), 'ECONNRESET')
})

test('what has no code, and what is its own cause, is unknown', () => {
  const endless: { cause?: unknown; code: string } = { code: '' }
  endless.cause = endless
  for (const error of [undefined, null, 'ECONNRESET', new Error('x'), { code: 7 }, endless])
    assert.equal(errorCode(error), 'UNKNOWN')
})
