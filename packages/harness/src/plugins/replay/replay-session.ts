import type { JsonValue, SessionId, TurnEndReason } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import type { Session, SessionView } from '../../core/session/index.ts'
import type { ToolExecution } from '../../core/tools/index.ts'
import { HarnessError, jsonEquals } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { SandboxMode } from '../sandbox/events.ts'
import type { PlannedCall, PlannedTurn, ReplayPlan } from './plan.ts'
import { runFacts } from './run-facts.ts'
import type { RunFacts } from './run-facts.ts'
import { ServedTools } from './served-tools.ts'
import type { ServedResult } from './served-tools.ts'

export interface ReplayOptions {
  /** A composition with the model's adapter. */
  readonly ctx: Context
  readonly source: Session
  readonly plan: ReplayPlan
  /** Whom the inputs are given to. */
  readonly route: { readonly provider: string; readonly model: string }
  readonly sessionId: SessionId
  /** The folder of the new session; absolute. */
  readonly workspace: string
  /** `recorded`: calls are answered from the log, and the first that is not in it ends the replay. */
  readonly tools: 'recorded' | 'live'
  /** What tools may do in it; else what the log says. */
  readonly permission?: SandboxMode
  readonly signal?: AbortSignal
}

/** Where another model did something that the log has no answer for. */
export interface Divergence {
  /** The turn of the recorded session. */
  readonly turn: number
  readonly expected: Pick<PlannedCall, 'seq' | 'name' | 'arguments'> | undefined
  /** Undefined where the turn ended instead. */
  readonly came: { readonly name: string; readonly arguments: JsonValue } | undefined
}

export interface ReplayReport {
  readonly recorded: RunFacts
  readonly replayed: RunFacts
  /** With live tools the first one too, which then stops nothing. */
  readonly divergence?: Divergence
  /** How the turn ended that is the last; `completed` where all inputs were given. */
  readonly end: TurnEndReason | undefined
}

/**
 * Gives the inputs of a session to another model, in a new session that begins as the old one did before them. Resolves
 * after the last input, at the first divergence where tools are answered from the log, or after a turn that failed.
 */
export async function replaySession(options: ReplayOptions): Promise<ReplayReport> {
  return await new Replay(options).toEnd()
}

class Replay {
  readonly #options: ReplayOptions
  #turn: PlannedTurn | undefined
  /** How many of the turn's calls were made again. */
  #calls = 0
  /** Inputs of the turn that were given. */
  #given = 0
  #divergence: Divergence | undefined

  constructor(options: ReplayOptions) {
    this.#options = options
  }

  async toEnd(): Promise<ReplayReport> {
    const { ctx, source, plan, route, sessionId, workspace, permission, signal } = this.#options
    const { boundary } = plan
    const lineage = boundary === 0 ? {} : { parentSession: source.id, seedLength: boundary }
    const handle = await ctx.agents.create({
      sessionId,
      meta: { cwd: workspace, origin: 'replay', ...lineage },
      ...(boundary === 0 ? {} : { seed: source.events.slice(0, boundary) }),
      agentOptions: route,
      setup: agentCtx => this.#conduct(agentCtx),
      ...(signal === undefined ? {} : { signal }),
    })
    const { agent } = handle
    const stop = (): void => agent.cancel({ kind: 'user' })
    signal?.addEventListener('abort', stop, { once: true })
    try {
      if (permission !== undefined) ctx.get('sandboxPolicy')?.setMode(agent.session, permission)
      await this.#giveAll(agent)
      return this.#report(agent.session)
    } finally {
      signal?.removeEventListener('abort', stop)
      await handle.dispose()
    }
  }

  #conduct(ctx: Context): void {
    const { tools } = this.#options
    // Steering joins the step behind the one that it joined before.
    ctx.on('agent/request', async ({ agent, step }, next) => {
      this.#give(agent, step + 1)
      return await next()
    })
    if (tools === 'live') {
      ctx.on('tools/pre-execute', async (exec, next) => {
        if (exec.parent === undefined) this.#follow(exec)
        return await next()
      })
      return
    }
    const served = new ServedTools(ctx, exec => this.#serve(exec))
    // A tool whose plugin is gone is answered from the log like every other.
    for (const tool of this.#options.source.requestHeader()?.tools ?? []) {
      if (ctx.tools.get(tool.name, null) === undefined) served.offer(tool)
    }
    const prepend = { prepend: true }
    ctx.on('approval/request', async () => ({ outcome: 'allowed-once' }), prepend)
    ctx.on(
      'agent/pre-step',
      async (_step, next) => {
        served.hide()
        return await next()
      },
      prepend,
    )
  }

  async #giveAll(agent: Agent): Promise<void> {
    const { plan, tools, signal } = this.#options
    for (const turn of plan.turns) {
      this.#turn = turn
      this.#calls = 0
      this.#given = 0
      // What came too late for its step, since this model was done before, gets a turn of its own.
      while (this.#given < turn.inputs.length) {
        this.#give(agent, turn.inputs[this.#given]?.step ?? 1)
        await agent.whenIdle()
        if (signal?.aborted === true || this.#endOf(agent)?.kind !== 'completed') return
      }
      if (this.#calls < turn.calls.length) this.#diverge(turn.calls[this.#calls], undefined)
      if (tools === 'recorded' && this.#divergence !== undefined) return
    }
  }

  /** Gives all inputs of the turn up to the step; only the last one wakes, so that they enter together. */
  #give(agent: Agent, step: number): void {
    const { inputs = [] } = this.#turn ?? {}
    const due = inputs.slice(this.#given).filter(input => input.step <= step)
    this.#given += due.length
    for (const [index, { message }] of due.entries()) {
      const { content, source } = message
      agent.send(createUserMessage({ content, source }), 'next-step', index === due.length - 1)
    }
  }

  #endOf({ session }: Agent): TurnEndReason | undefined {
    return session.last('turn/end')?.data.reason
  }

  #serve(exec: ToolExecution): ServedResult {
    const result = this.#follow(exec)
    if (result !== undefined) return result
    const { agent } = exec
    const reason = 'stopped: no recorded answer'
    agent?.cancel({ kind: 'hook', reason })
    throw new HarnessError('REPLAY_DIVERGED', reason)
  }

  /** What the log says to a call; undefined, from the first one on that is not the recorded one. */
  #follow({ name, arguments: args }: ToolExecution): ServedResult | undefined {
    if (this.#divergence !== undefined) return undefined
    const expected = this.#turn?.calls[this.#calls]
    this.#calls++
    const isSame = expected?.name === name && jsonEquals(expected.arguments, args)
    const { tools } = this.#options
    if (isSame && (expected.result !== undefined || tools === 'live')) return expected.result
    this.#diverge(expected, { name, arguments: args })
    return undefined
  }

  #diverge(expected: PlannedCall | undefined, came: Divergence['came']): void {
    this.#divergence ??= {
      turn: this.#turn?.turn ?? 0,
      expected: expected && { seq: expected.seq, name: expected.name, arguments: expected.arguments },
      came,
    }
  }

  #report(session: SessionView): ReplayReport {
    const { source, plan } = this.#options
    return {
      recorded: runFacts(source, plan.boundary),
      // The end of the seed is the new session's own event.
      replayed: runFacts(session, plan.boundary),
      ...(this.#divergence === undefined ? {} : { divergence: this.#divergence }),
      end: session.last('turn/end')?.data.reason,
    }
  }
}
