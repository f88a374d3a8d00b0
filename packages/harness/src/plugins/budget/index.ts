import type { PluginObject } from '../../kernel/index.ts'
import { budgetSchema } from './config.ts'
import type { BudgetConfig, BudgetInput, Limits } from './config.ts'
import { Keeper } from './keeper.ts'

export type { BudgetConfig, BudgetInput } from './config.ts'
export { spending } from './spending.ts'
export type { Spending, Spent } from './spending.ts'

/**
 * Ends turns once money, tokens, turns, steps or time are used up, of the program's run or of a session. It looks before
 * each request, those that are sent again included, so that the last one is the only one that may go beyond; the time
 * also ends what tools do.
 */
export const budget: PluginObject<BudgetInput, BudgetConfig> = {
  name: 'budget',
  inject: ['sessions'],
  get Config() {
    return budgetSchema()
  },
  apply(ctx, config) {
    if (!hasLimit(config) && !hasLimit(config.session)) return
    const keeper = new Keeper(config)
    ctx.effect(() => () => keeper.close(), 'time limits')
    ctx.on('agent/created', ({ agent }) => keeper.add(agent.session))
    ctx.on('agent/pre-step', ({ agent }, next) => {
      keeper.beforeStep(agent)
      return next()
    })
    ctx.on('agent/request', async ({ agent }, next) => {
      const config = await next()
      keeper.beforeRequest(agent, config)
      return config
    })
    ctx.on('agent/status', ({ agent, status }) => keeper.watchTime(agent, status))
  },
}

function hasLimit({ maxCost, maxTokens, maxTurns, maxSteps, maxSeconds }: Limits): boolean {
  return [maxCost, maxTokens, maxTurns, maxSteps, maxSeconds].some(limit => limit !== undefined)
}
