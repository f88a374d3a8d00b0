import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mean, median, range } from '../src/stats.js'

test('the mean of three numbers', () => {
  assert.equal(mean([1, 2, 6]), 3)
})

test('the median of an odd count', () => {
  assert.equal(median([10, 2, 9]), 9)
})

test('the median of an even count', () => {
  assert.equal(median([4, 1, 3, 2]), 2.5)
})

test('the range', () => {
  assert.equal(range([5, -2, 10]), 12)
})
