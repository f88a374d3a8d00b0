import {
  gt,
  int,
  gte,
  literal,
  lte,
  number,
  optional,
  prefault,
  record,
  strictObject,
  string,
  _default,
} from 'zod/mini'
import type { input, output } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'

const count = () => optional(int().check(gte(1)))
const money = () => optional(number().check(gt(0)))

const limits = () => ({
  /** In `currency`. */
  maxCost: money(),
  /** Input, output and what caches served, of all requests. */
  maxTokens: count(),
  maxTurns: count(),
  /** Requests to the model, without those that are sent again. */
  maxSteps: count(),
  /** While a turn runs. */
  maxSeconds: optional(number().check(gt(0), lte(Math.floor(MAX_TIMER_DELAY_MS / 1000)))),
})

const price = () =>
  strictObject({
    currency: literal(['CNY', 'USD']),
    input: number().check(gte(0)),
    output: number().check(gte(0)),
    cacheRead: number().check(gte(0)),
    cacheWrite: optional(number().check(gte(0))),
  })

export const budgetSchema = () =>
  prefault(
    strictObject({
      /** Of everything that this program does until it ends. */
      ...limits(),
      /** Of each session in all its runs. */
      session: _default(strictObject(limits()), {}),
      currency: _default(literal(['CNY', 'USD']), 'USD'),
      /** Per million tokens, by PROVIDER/MODEL. */
      prices: _default(record(string(), price()), {}),
    }),
    {},
  )

export type BudgetConfig = output<ReturnType<typeof budgetSchema>>
export type BudgetInput = input<ReturnType<typeof budgetSchema>>

export interface Limits {
  readonly maxCost?: number | undefined
  readonly maxTokens?: number | undefined
  readonly maxTurns?: number | undefined
  readonly maxSteps?: number | undefined
  readonly maxSeconds?: number | undefined
}
