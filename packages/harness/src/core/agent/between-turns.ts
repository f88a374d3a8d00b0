import type { Context, Disposer } from '../../kernel/index.ts'
import type { Agent } from './agent.ts'
import { AgentError } from './errors.ts'

export interface BetweenTurnsOptions {
  /** Told which agents are at work each time a change has to wait for them. */
  readonly waitsFor?: (agents: readonly Agent[]) => void
}

/** Keeps what must not happen in the middle of a turn apart from turns: `new Loader(ctx, betweenTurns(ctx))`. */
export interface BetweenTurns {
  /** Throws AGENT_BUSY in code that an agent runs: it would wait for its own end, or stand in line behind who does. */
  guard(): void
  /**
   * Resolves at a moment when no agent does anything. From then on none begins a turn until the function it gives is
   * called, or `ctx` ends; what is sent meanwhile is answered afterwards. Until that moment all agents are free, since one
   * that works may wait for another.
   */
  drain(): Promise<Disposer>
}

export function betweenTurns(ctx: Context, options: BetweenTurnsOptions = {}): BetweenTurns {
  const agents = (): Agent[] => ctx.get('agents')?.list() ?? []
  return {
    guard() {
      const inside = agents().find(agent => ctx.agents.isInside(agent))
      if (inside === undefined) return
      throw new AgentError('AGENT_BUSY', `agent "${inside.id}" cannot wait for its own turn to end`)
    },
    async drain() {
      /** They ended, and what they did last is over: they begin nothing any more. */
      const over = new Set<Agent>()
      for (let waits = 0; ; waits++) {
        const all = agents()
        const { holds, ending } = holdAll(all, over)
        if (holds !== undefined) return keep(ctx, holds)
        const running = all.filter(agent => agent.status === 'running')
        if (running.length > 0) options.waitsFor?.(running)
        await Promise.all(all.map(agent => agent.whenIdle()))
        for (const agent of ending) over.add(agent)
        // One that calls itself idle and stays busy must not keep the whole process from other work.
        if (waits > 0) await new Promise(setImmediate)
      }
    },
  }
}

function keep(ctx: Context, holds: Set<Disposer>): Disposer {
  const release = ctx.effect(
    () => () => {
      for (const end of holds) end()
    },
    'agents held',
  )
  const holdNew = (agent: Agent): void => {
    const end = hold(agent)
    if (typeof end === 'function') holds.add(end)
  }
  const stop = ctx.on('agent/created', ({ agent }) => holdNew(agent), { global: true })
  return () => {
    stop()
    release()
  }
}

interface Attempt {
  /** All that are not over, or undefined where one of them is at work. */
  readonly holds: Set<Disposer> | undefined
  readonly ending: readonly Agent[]
}

function holdAll(agents: readonly Agent[], over: ReadonlySet<Agent>): Attempt {
  const holds = new Set<Disposer>()
  const ending: Agent[] = []
  let isBusy = false
  for (const agent of agents.filter(each => !over.has(each))) {
    const end = hold(agent)
    if (typeof end === 'function') holds.add(end)
    else isBusy = true
    if (end === 'ending') ending.push(agent)
  }
  if (!isBusy) return { holds, ending }
  for (const end of holds) end()
  return { holds: undefined, ending }
}

function hold(agent: Agent): Disposer | 'busy' | 'ending' {
  try {
    return agent.hold === undefined ? holdByMaintenance(agent) : agent.hold()
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'AGENT_BUSY') return 'busy'
    if (code === 'AGENT_DISPOSED') return 'ending'
    throw error
  }
}

/** For agents that are driven otherwise: the next best, which anything that cancels ends early. */
function holdByMaintenance(agent: Agent): Disposer {
  const { promise, resolve } = Promise.withResolvers<void>()
  const job = (signal: AbortSignal): Promise<void> => {
    signal.addEventListener('abort', () => resolve())
    return promise
  }
  agent.runMaintenance(job).catch(() => {})
  return resolve
}
