import type { AgentCancelCause } from '@dsh/protocol'
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
      for (let waits = 0; ; waits++) {
        const all = agents()
        const holds = holdAll(all)
        if (holds !== undefined) return keep(ctx, holds)
        const running = all.filter(agent => agent.status === 'running')
        if (running.length > 0) options.waitsFor?.(running)
        await Promise.all(all.map(agent => agent.whenIdle()))
        // One that calls itself idle and stays busy must not keep the whole process from other work.
        if (waits > 0) await new Promise(setImmediate)
      }
    },
  }
}

function keep(ctx: Context, holds: Set<() => void>): Disposer {
  const release = ctx.effect(
    () => () => {
      for (const end of holds) end()
    },
    'agents held',
  )
  const stop = ctx.on('agent/created', ({ agent }) => void holds.add(hold(agent)), { global: true })
  return () => {
    stop()
    release()
  }
}

/** All or none; undefined where one is at work. */
function holdAll(agents: readonly Agent[]): Set<() => void> | undefined {
  const holds = new Set<() => void>()
  try {
    for (const agent of agents) holds.add(hold(agent))
    return holds
  } catch (error) {
    for (const end of holds) end()
    if ((error as { code?: unknown }).code === 'AGENT_BUSY') return undefined
    throw error
  }
}

/** Keeps the agent from beginning a turn; only its disposal ends that early. Throws AGENT_BUSY. */
function hold(agent: Agent): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  const job = (signal: AbortSignal): Promise<void> => {
    signal.addEventListener('abort', () => {
      if ((signal.reason as AgentCancelCause).kind === 'disposed') resolve()
    })
    return promise
  }
  try {
    agent.runMaintenance(job).catch(() => {})
  } catch (error) {
    // One that ends begins nothing any more.
    if ((error as { code?: unknown }).code !== 'AGENT_DISPOSED') throw error
  }
  return resolve
}
