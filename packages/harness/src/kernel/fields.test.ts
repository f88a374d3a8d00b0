import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isCount, isFields, isPositive, isText } from './index.ts'

const values = [
  undefined,
  null,
  [],
  {},
  Object.create(null),
  '',
  ' ',
  'text',
  -1,
  0,
  1,
  1.5,
  NaN,
  '1',
] as const

test('records, texts and whole numbers are told from what merely looks like them', () => {
  const admitted = (guard: (value: unknown) => boolean): unknown[] => values.filter(guard)
  assert.deepEqual(admitted(isFields), [{}, Object.create(null)])
  assert.deepEqual(admitted(isText), [' ', 'text', '1'])
  assert.deepEqual(admitted(isPositive), [1])
  assert.deepEqual(admitted(isCount), [0, 1])
})
