import type { Agent } from '../../../core/agent/index.ts'
import type { BashProcess } from '../service.ts'

/** As many are kept before those are looked for of which nothing runs any more. */
const lookAfter = 16

interface Left {
  processes: readonly BashProcess[]
  limit: number
}

/** What commands of agents left running; it ends with its agent at the latest. */
export class LeftRunning {
  readonly #byAgent = new WeakMap<Agent, Left>()

  add(agent: Agent, process: BashProcess): void {
    const left = this.#of(agent)
    if (left.processes.length >= left.limit) {
      left.processes = left.processes.filter(each => each.isRunning())
      left.limit = Math.max(lookAfter, left.processes.length * 2)
    }
    left.processes = [...left.processes, process]
  }

  #of(agent: Agent): Left {
    const known = this.#byAgent.get(agent)
    if (known !== undefined) return known
    const left: Left = { processes: [], limit: lookAfter }
    this.#byAgent.set(agent, left)
    agent.ctx.effect(
      () => () => Promise.all(left.processes.map(each => each.kill())).then(() => {}),
      'what commands left running',
    )
    return left
  }
}
