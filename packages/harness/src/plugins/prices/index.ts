import type { TokenUsage } from '@dsh/protocol'
import { providerCatalog } from '../llm-openai-chat/index.ts'
import type { ModelPrice } from '../llm-openai-chat/index.ts'
import { isPeak } from './peak.ts'

export type { ModelPrice, PeakHours } from '../llm-openai-chat/index.ts'

export interface PricedRoute {
  readonly provider: string
  readonly model: string
}

/** Prices of one's own by `PROVIDER/MODEL`; they win over those that are known here. */
export type OwnPrices = Readonly<Record<string, ModelPrice>>

export type Currency = ModelPrice['currency']

/** How much of a currency is about one USD, for limits in another currency than the price; figures, not a quotation. */
export const perUSD: Readonly<Record<Currency, number>> = { USD: 1, CNY: 7 }

const free: ModelPrice = { currency: 'USD', cacheRead: 0, input: 0, output: 0 }

/** What a model costs per million tokens, nothing on a machine of one's own; undefined where nobody said. */
export function priceOf({ provider, model }: PricedRoute, own: OwnPrices = {}): ModelPrice | undefined {
  const route = `${provider}/${model}`
  if (Object.hasOwn(own, route)) return own[route]
  if (provider === 'demo') return free
  const facts = Object.hasOwn(providerCatalog, provider) ? providerCatalog[provider] : undefined
  const { models = {}, otherModels, keyOptional } = facts ?? {}
  if (Object.hasOwn(models, model)) return models[model]?.price
  const same = Object.values(models).find(({ aliases }) => aliases?.includes(model))
  return (same ?? otherModels)?.price ?? (keyOptional === true ? free : undefined)
}

/** What a request cost that ended at `when`, in epoch milliseconds, in the currency of its price. */
export function costOf(usage: TokenUsage, price: ModelPrice, when: number): number {
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const sum =
    inputTokens * price.input +
    cacheWriteTokens * (price.cacheWrite ?? price.input) +
    cacheReadTokens * price.cacheRead +
    outputTokens * price.output
  const { peak } = price
  return (sum / 1_000_000) * (peak !== undefined && isPeak(peak, when) ? peak.factor : 1)
}
