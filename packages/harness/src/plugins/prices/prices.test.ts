import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costOf, priceOf } from './index.ts'
import type { ModelPrice } from './index.ts'

const flash = { provider: 'deepseek', model: 'deepseek-flash' }
const usage = { inputTokens: 1_000_000, outputTokens: 500_000, cacheReadTokens: 2_000_000 }
/** In Shanghai a Monday, 08:59, and a minute later. */
const quiet = Date.parse('2026-11-30T00:59:00Z')
const peak = Date.parse('2026-11-30T01:00:00Z')

function known(model: string, provider = 'deepseek'): ModelPrice {
  const price = priceOf({ provider, model })
  assert.ok(price)
  return price
}

test('cached input, fresh input and output have prices of their own, doubled in the hours of the peak', () => {
  const price = known('deepseek-flash')
  assert.equal(costOf(usage, price, quiet), 1 + 2 + 0.04)
  assert.equal(costOf(usage, price, peak), 2 * (1 + 2 + 0.04))
  assert.equal(costOf(usage, price, Date.parse('2026-11-29T01:00:00Z')), 1 + 2 + 0.04)
  assert.equal(costOf(usage, price, Date.parse('2026-11-30T10:00:00Z')), 1 + 2 + 0.04)
  assert.equal(costOf(usage, known('deepseek-v4-pro'), quiet), 4.5 + 6.75 + 0.3)
})

test('what is written to a cache costs as input unless the price says otherwise', () => {
  const price = { currency: 'USD', cacheRead: 1, input: 10, output: 100 } as const
  const written = { inputTokens: 0, outputTokens: 0, cacheWriteTokens: 1_000_000 }
  assert.equal(costOf(written, price, quiet), 10)
  assert.equal(costOf(written, { ...price, cacheWrite: 12.5 }, quiet), 12.5)
})

test('another name of a model has its price, and an unknown one has none', () => {
  assert.equal(known('deepseek-v4-flash'), known('deepseek-flash'))
  assert.equal(known('gpt-5', 'openai').currency, 'USD')
  for (const model of ['toString', 'x']) assert.equal(priceOf({ provider: 'deepseek', model }), undefined)
  assert.equal(priceOf({ provider: 'nobody', model: 'deepseek-flash' }), undefined)
})

test('the demo and hosts of one own cost nothing', () => {
  assert.equal(costOf(usage, known('demo', 'demo'), quiet), 0)
  assert.equal(costOf(usage, known('any', 'ollama'), quiet), 0)
})

test('a price of one own wins, and serves models that nobody knows', () => {
  const own = { currency: 'USD', cacheRead: 0, input: 1, output: 2 } as const
  const prices = { 'deepseek/deepseek-flash': own, 'local/llama/70b': own }
  assert.equal(priceOf(flash, prices), own)
  assert.equal(priceOf({ provider: 'local', model: 'llama/70b' }, prices), own)
})
