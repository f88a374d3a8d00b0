import type { Agent } from '../../../core/agent/index.ts'
import type { BashProcess } from '../service.ts'

/** What commands of agents left running; it ends with its agent at the latest. */
export class LeftRunning {
  readonly #byAgent = new WeakMap<Agent, Set<BashProcess>>()

  add(agent: Agent, process: BashProcess): void {
    const known = this.#byAgent.get(agent)
    if (known !== undefined) {
      known.add(process)
      return
    }
    const processes = new Set([process])
    this.#byAgent.set(agent, processes)
    agent.ctx.effect(
      () => () => Promise.all([...processes].map(each => each.kill())).then(() => {}),
      'what commands left running',
    )
  }
}
