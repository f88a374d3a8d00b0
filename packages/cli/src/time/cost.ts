import { costOf as costOfUsage, priceOf } from '@dsh/harness/plugins/prices'
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
    const price = priceOf({ provider, model })
    if (price === undefined || (currency !== undefined && currency !== price.currency)) return undefined
    currency = price.currency
    amount += costOfUsage(usage, price, time)
  }
  return currency === undefined ? undefined : { amount, currency }
}
