import type { Agent, AgentStatus } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import { priceOf } from '../prices/index.ts'
import type { PricedRoute } from '../prices/index.ts'
import { beforeStep, reached, timeText, together, unpricedText, usedOf } from './account.ts'
import type { Holder, Used } from './account.ts'
import type { BudgetConfig, Limits } from './config.ts'
import { spending } from './spending.ts'
import type { Spending } from './spending.ts'

/** Holds what is used against the limits, and ends turns. */
export class Keeper {
  readonly #config: BudgetConfig
  /** The sessions that worked while the program ran, and what each had used before. */
  readonly #before = new Map<Session, Spending>()
  readonly #timers = new Map<Agent, NodeJS.Timeout>()

  constructor(config: BudgetConfig) {
    this.#config = config
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  /** What `session` used up to here belongs to earlier runs. */
  add(session: Session): void {
    if (!this.#before.has(session)) this.#before.set(session, session.fold(spending))
  }

  beforeStep(agent: Agent): void {
    this.#stopWhere(agent, used => used)
  }

  /** Money without a price cannot be counted, so nothing is asked. */
  beforeRequest(agent: Agent, route: PricedRoute): void {
    const { maxCost = this.#config.session.maxCost, prices } = this.#config
    if (maxCost !== undefined && priceOf(route, prices) === undefined)
      stop(agent, unpricedText(`${route.provider}/${route.model}`))
    else this.#stopWhere(agent, beforeStep)
  }

  watchTime(agent: Agent, status: AgentStatus): void {
    clearTimeout(this.#timers.get(agent))
    this.#timers.delete(agent)
    const [next] = this.#holders(agent.session)
      .flatMap(({ limits: { maxSeconds }, used, holder }) =>
        maxSeconds === undefined ? [] : [{ maxSeconds, holder, left: maxSeconds * 1000 - used.activeMs }],
      )
      .sort((a, b) => a.left - b.left)
    if (status === 'idle' || next === undefined) return
    const { maxSeconds, holder, left } = next
    const timer = setTimeout(() => stop(agent, timeText(maxSeconds, holder)), Math.max(0, left))
    this.#timers.set(agent, timer)
  }

  #stopWhere(agent: Agent, view: (used: Used) => Used): void {
    for (const { used, limits, holder } of this.#holders(agent.session)) {
      const reason = reached(view(used), limits, holder, this.#config)
      if (reason === undefined) continue
      stop(agent, reason)
      return
    }
  }

  #holders(
    session: Session,
  ): readonly { readonly holder: Holder; readonly limits: Limits; readonly used: Used }[] {
    this.add(session)
    const now = Date.now()
    const all = [...this.#before].map(([each, before]) => usedOf(each.fold(spending), now, before))
    return [
      { holder: 'run', limits: this.#config, used: together(all) },
      { holder: 'session', limits: this.#config.session, used: usedOf(session.fold(spending), now) },
    ]
  }
}

/** What waits to be read stays there for whoever goes on. */
function stop(agent: Agent, reason: string): void {
  agent.cancel({ kind: 'hook', reason }, { keepInbox: true })
}
