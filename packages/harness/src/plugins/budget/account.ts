import { costOf, perUSD, priceOf } from '../prices/index.ts'
import type { Currency, OwnPrices } from '../prices/index.ts'
import type { Limits } from './config.ts'
import type { Route, Spending, Spent } from './spending.ts'

/** What was used up, in the units of the limits. */
export interface Used {
  readonly spent: readonly Spent[]
  readonly tokens: number
  /** The models of answers that did not say what they took. */
  readonly untold: readonly Route[]
  readonly turns: number
  readonly steps: number
  readonly activeMs: number
}

export interface Money {
  readonly currency: Currency
  readonly prices: OwnPrices
}

/** Whose limits they are, for people. */
export type Holder = 'run' | 'session'

/** What one session used since `from`, or since it began, at `now`. */
export function usedOf(state: Spending, now: number, from?: Spending): Used {
  const activeMs = (each: Spending): number =>
    each.activeMs + (each.turnBegan === undefined ? 0 : Math.max(0, now - each.turnBegan))
  return {
    spent: [...state.spent, ...(from?.spent ?? []).map(negative)],
    tokens: state.tokens - (from?.tokens ?? 0),
    untold: state.untold.slice(from?.untold.length ?? 0),
    turns: state.turns - (from?.turns ?? 0),
    steps: state.steps - (from?.steps ?? 0),
    activeMs: activeMs(state) - (from?.activeMs ?? 0),
  }
}

/** The same without the step that is open: it is asked whether it may ask. */
export function beforeStep(used: Used): Used {
  return { ...used, steps: used.steps - 1 }
}

export function together(all: readonly Used[]): Used {
  const sum = (part: (used: Used) => number): number => all.reduce((total, used) => total + part(used), 0)
  return {
    spent: all.flatMap(({ spent }) => spent),
    tokens: sum(used => used.tokens),
    untold: all.flatMap(({ untold }) => untold),
    turns: sum(used => used.turns),
    steps: sum(used => used.steps),
    activeMs: sum(used => used.activeMs),
  }
}

/** In the currency of the limit; undefined where something was asked of a model without a price. */
export function costIn({ currency, prices }: Money, spent: readonly Spent[]): number | undefined {
  let total = 0
  for (const each of spent) {
    const price = priceOf(each, prices)
    if (price === undefined) return undefined
    total += (costOf(each.usage, price, each.from) / perUSD[price.currency]) * perUSD[currency]
  }
  return total
}

/** Which limit nothing more may be asked under, in words; undefined where there is room. */
export function reached(used: Used, limits: Limits, holder: Holder, money: Money): string | undefined {
  const { maxCost, maxTokens, maxTurns, maxSteps, maxSeconds } = limits
  const of = `of the ${holder} is reached`
  if (maxCost !== undefined) {
    const cost = costIn(money, used.spent)
    if (cost === undefined) return unpriced(used.spent, money)
    const one = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 1, cacheWriteTokens: 1 }
    const untold = used.untold.find(route => costIn(money, [{ ...route, from: 0, usage: one }]) !== 0)
    if (untold !== undefined) return untoldText(untold, 'money')
    if (cost >= maxCost)
      return `the limit of ${maxCost} ${money.currency} ${of}: ${amount(cost)} ${money.currency} were spent`
  }
  const [untold] = used.untold
  if (maxTokens !== undefined && untold !== undefined) return untoldText(untold, 'tokens')
  if (maxTokens !== undefined && used.tokens >= maxTokens)
    return `the limit of ${maxTokens} tokens ${of}: ${used.tokens} were used`
  if (maxTurns !== undefined && used.turns > maxTurns)
    return `the limit of ${counted(maxTurns, 'turn')} ${of}`
  if (maxSteps !== undefined && used.steps >= maxSteps)
    return `the limit of ${counted(maxSteps, 'step')} ${of}`
  if (maxSeconds !== undefined && used.activeMs >= maxSeconds * 1000) return timeText(maxSeconds, holder)
  return undefined
}

export function timeText(maxSeconds: number, holder: Holder): string {
  return `the limit of ${counted(maxSeconds, 'second')} of the ${holder} is reached`
}

function unpriced(spent: readonly Spent[], { prices }: Money): string {
  const route = spent.find(each => priceOf(each, prices) === undefined)
  return unpricedText(`${route?.provider}/${route?.model}`)
}

/** Says which limit cannot be kept, and what mends it. */
export function unpricedText(route: string): string {
  return `a limit of money needs the price of ${route}, which is not known: set it as prices of budget in dsh.yml`
}

function untoldText({ provider, model }: Route, what: 'money' | 'tokens'): string {
  return `a limit of ${what} cannot be kept: ${provider}/${model} does not say what an answer took`
}

function negative(spent: Spent): Spent {
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = spent.usage
  const usage = {
    inputTokens: -inputTokens,
    outputTokens: -outputTokens,
    cacheReadTokens: -cacheReadTokens,
    cacheWriteTokens: -cacheWriteTokens,
  }
  return { ...spent, usage }
}

function amount(cost: number): string {
  return String(Number(cost.toPrecision(4)))
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
