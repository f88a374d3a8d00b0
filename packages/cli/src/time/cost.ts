import { providerCatalog } from '@dsh/harness/plugins/llm-openai-chat'
import type { ModelPrice, PeakHours } from '@dsh/harness/plugins/llm-openai-chat'
import type { RouteUsage } from '@dsh/harness/plugins/replay'

export interface Cost {
  readonly amount: number
  readonly currency: string
}

/** What answers cost by the prices of the catalog; undefined where one of them has no price, or another currency. */
export function costOf(usages: readonly RouteUsage[]): Cost | undefined {
  let amount = 0
  let currency: string | undefined
  for (const { provider, model, time, usage } of usages) {
    const price = priceOf(provider, model)
    if (price === undefined || (currency !== undefined && currency !== price.currency)) return undefined
    currency = price.currency
    const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
    const sum =
      (inputTokens + cacheWriteTokens) * price.input +
      cacheReadTokens * price.cacheRead +
      outputTokens * price.output
    amount +=
      (sum / 1_000_000) * (price.peak !== undefined && isPeak(price.peak, time) ? price.peak.factor : 1)
  }
  return currency === undefined ? undefined : { amount, currency }
}

function priceOf(provider: string, model: string): ModelPrice | undefined {
  const facts = Object.hasOwn(providerCatalog, provider) ? providerCatalog[provider] : undefined
  const { models = {}, otherModels } = facts ?? {}
  if (Object.hasOwn(models, model)) return models[model]?.price
  const same = Object.values(models).find(({ aliases }) => aliases?.includes(model))
  return (same ?? otherModels)?.price
}

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

function isPeak({ timeZone, hours, days }: PeakHours, time: number): boolean {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    weekday: 'short',
    hour: 'numeric',
    minute: 'numeric',
    hourCycle: 'h23',
  })
  const parts = new Map(format.formatToParts(time).map(({ type, value }) => [type, value]))
  const hour = Number(parts.get('hour')) + Number(parts.get('minute')) / 60
  const day = weekdays.indexOf(parts.get('weekday') ?? '')
  return days.includes(day) && hours.some(([from, to]) => from <= hour && hour < to)
}
