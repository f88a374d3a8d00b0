import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costOf } from './cost.ts'

const flash = { provider: 'deepseek', model: 'deepseek-flash' }
const usage = { inputTokens: 1_000_000, outputTokens: 500_000, cacheReadTokens: 2_000_000 }
/** In Shanghai a Monday, 08:59, and a minute later. */
const quiet = Date.parse('2026-11-30T00:59:00Z')
const peak = Date.parse('2026-11-30T01:00:00Z')

test('a cost is the sum of its answers at the prices of their hours', () => {
  assert.deepEqual(costOf([{ ...flash, time: quiet, usage }]), { amount: 1 + 2 + 0.04, currency: 'CNY' })
  assert.equal(costOf([{ ...flash, time: peak, usage }])?.amount, 2 * (1 + 2 + 0.04))
  const sunday = Date.parse('2026-11-29T01:00:00Z')
  assert.equal(costOf([{ ...flash, time: sunday, usage }])?.amount, 1 + 2 + 0.04)
  const evening = Date.parse('2026-11-30T10:00:00Z')
  assert.equal(costOf([{ ...flash, time: evening, usage }])?.amount, 1 + 2 + 0.04)
})

test('a cost is unknown where one of the answers has no price, and where there is no answer', () => {
  const other = { provider: 'nobody', model: 'm', time: quiet, usage }
  assert.equal(costOf([{ ...flash, time: quiet, usage }, other]), undefined)
  assert.equal(costOf([]), undefined)
  assert.equal(costOf([{ ...flash, model: 'toString', time: quiet, usage }]), undefined)
})
