import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSessionId } from './session-id.ts'

const day = 24 * 3600 * 1000

test('ids of later sessions sort behind earlier ones and have the same length', () => {
  const start = Date.UTC(2026, 10, 30)
  const times = [0, 32, 1000, 60_000, day, 365 * day, 30 * 365 * day]
  const ids = times.map((time, at) => newSessionId(start + time, 32 ** 3 - 1 - at))
  assert.deepEqual(ids.toSorted(), ids)
  assert.deepEqual(new Set(ids.map(id => id.length)), new Set([10]))
})

test('ids of one moment differ, and need no care when typed', () => {
  const ids = new Set(Array.from({ length: 200 }, () => newSessionId(Date.UTC(2026, 10, 30))))
  assert.ok(ids.size > 190)
  for (const id of ids) assert.match(id, /^[0-9a-hjkmnp-tv-z]{10}$/)
})

test('a clock before the beginning of time still gives an id', () => {
  assert.equal(newSessionId(0, 5), '0000000005')
})
