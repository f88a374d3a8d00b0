import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnsOf, inColumns } from './columns.ts'

test('Chinese and pictures take two columns, marks on letters none', () => {
  assert.deepEqual(['abc', '你好', '🙂', 'e\u0301', ''].map(columnsOf), [3, 4, 2, 1, 0])
})

test('a text is brought to a number of columns without cutting a wide character', () => {
  assert.equal(inColumns('abc', 5), 'abc  ')
  assert.equal(inColumns('你好', 4), '你好')
  assert.equal(inColumns('你好吗', 4), '你… ')
  assert.equal(inColumns('abcdef', 4), 'abc…')
  assert.equal(inColumns('🙂🙂', 3), '🙂…')
})
