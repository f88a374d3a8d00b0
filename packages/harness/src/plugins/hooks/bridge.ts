import type { Agent, PreStepDecision } from '../../core/agent/index.ts'
import type {
  PostToolDecision,
  PreToolDecision,
  ToolExecution,
  ToolExecutionResult,
} from '../../core/tools/index.ts'
import { endsWithin } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { afterCall, beforeCall } from './call-points.ts'
import type { HooksConfig } from './config.ts'
import { DetachedRuns } from './detached-runs.ts'
import type { Occasion } from './payload.ts'
import { SessionHooks } from './session-hooks.ts'
import { permissionText } from './text.ts'
import { toForeignCall } from './tool-names.ts'
import { beforeStep, beforeStop } from './turn-points.ts'
import type { StepBeginning } from './turn-points.ts'

type Beginning = Omit<StepBeginning, 'until'> & { readonly agent: Agent }

interface MadeCall {
  readonly agent: Agent
  readonly execution: ToolExecution
  readonly result: ToolExecutionResult
}

/** How long hooks may take for the end of a session while the program ends. */
const lastWordMs = 2000

/** The hooks of all sessions, at the points of the harness. */
export class HookBridge {
  readonly #ctx: Context
  readonly #config: HooksConfig
  readonly #sessions = new Map<Agent, SessionHooks>()
  readonly #detached = new DetachedRuns()
  readonly #unloading = new AbortController()
  /** What is waited for by others. */
  readonly #running = new Set<Promise<unknown>>()

  constructor(ctx: Context, config: HooksConfig) {
    this.#ctx = ctx
    this.#config = config
  }

  async preStep(beginning: Beginning, next: () => Promise<PreStepDecision>): Promise<PreStepDecision> {
    const { agent, messages, step, signal } = beginning
    // A turn that nothing enters is none.
    if (step === 1 && messages.length === 0) return await next()
    const hooks = await this.#hooksOf(agent, { isNewTurn: step === 1 })
    signal.throwIfAborted()
    return await this.#hold(beforeStep(hooks, { ...beginning, until: this.#until(signal) }, next))
  }

  async preExecute(
    agent: Agent,
    execution: ToolExecution,
    next: () => Promise<PreToolDecision>,
  ): Promise<PreToolDecision> {
    const hooks = await this.#hooksOf(agent)
    if (!hooks.has('PreToolUse')) return await next()
    const until = this.#until(execution.signal)
    return await this.#hold(beforeCall(hooks, execution, { until, next }))
  }

  async postExecute(
    { agent, execution, result }: MadeCall,
    next: () => Promise<PostToolDecision>,
  ): Promise<PostToolDecision> {
    const hooks = await this.#hooksOf(agent)
    if (result.isError || !hooks.has('PostToolUse')) return await next()
    const until = this.#until(execution.signal)
    return await this.#hold(afterCall(hooks, { execution, result }, { until, next }))
  }

  async turnStopping(agent: Agent, turn: number, signal: AbortSignal): Promise<void> {
    const hooks = await this.#hooksOf(agent)
    if (!hooks.has('Stop')) return
    await this.#hold(beforeStop(hooks, { turn, signal, until: this.#until(signal) }))
  }

  /** Somebody is asked; nobody waits for hooks that tell of it. */
  permissionAsked(agent: Agent, toolName: string): void {
    const hooks = this.#sessions.get(agent)
    if (hooks === undefined) return
    const { name } = toForeignCall(toolName, {}, '/')
    this.#detach(hooks, {
      point: 'Notification',
      type: 'permission_prompt',
      message: permissionText(name),
    })
  }

  agentDisposed(agent: Agent): void {
    const hooks = this.#sessions.get(agent)
    this.#sessions.delete(agent)
    if (hooks?.hasBegun === true) this.#detach(hooks, { point: 'SessionEnd', reason: 'other' })
  }

  /** Ends what runs and waits for that. Where the program ends, so do the sessions that still live. */
  async close({ isProgramEnd }: { readonly isProgramEnd: boolean }): Promise<void> {
    if (isProgramEnd) {
      const ends = [...this.#sessions.values()]
        .filter(({ hasBegun }) => hasBegun)
        .map(hooks => this.#end(hooks))
      await endsWithin(Promise.all([...ends, this.#detached.settled()]), lastWordMs)
    }
    this.#unloading.abort()
    await this.#detached.end()
    await Promise.allSettled(this.#running)
    this.#sessions.clear()
  }

  async #end(hooks: SessionHooks): Promise<void> {
    const { signal } = this.#unloading
    const end = hooks.run({ point: 'SessionEnd', reason: 'other' }, { turn: undefined, signal })
    await this.#hold(end)
  }

  #detach(hooks: SessionHooks, occasion: Occasion): void {
    if (!hooks.has(occasion.point)) return
    this.#detached.add(async signal => {
      await hooks
        .run(occasion, { turn: undefined, signal })
        .catch((error: unknown) => this.#ctx.fiber.report(error, occasion.point))
    })
  }

  /** Of a turn that begins, as the files are now. */
  async #hooksOf(
    agent: Agent,
    { isNewTurn = false }: { readonly isNewTurn?: boolean } = {},
  ): Promise<SessionHooks> {
    const known = this.#sessions.get(agent)
    const hooks = known ?? this.#open(agent)
    if (known === undefined || isNewTurn) hooks.loading = hooks.refresh()
    await hooks.loading
    return hooks
  }

  #open(agent: Agent): SessionHooks {
    const { id: sessionId } = agent.session
    const hooks = new SessionHooks(this.#ctx, {
      agent,
      config: this.#config,
      tell: (code, message) => this.#ctx.emit('hooks/notice', { sessionId, code, message }),
    })
    this.#sessions.set(agent, hooks)
    return hooks
  }

  #until(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#unloading.signal])
  }

  async #hold<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work)
    try {
      return await work
    } finally {
      this.#running.delete(work)
    }
  }
}
