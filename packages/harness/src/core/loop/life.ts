import { joinErrors } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { agentEvents } from '../agent/index.ts'
import type { AgentHandle, AgentOptions, AgentSetup, SessionStartSource } from '../agent/index.ts'
import { turnCursor } from '../session/index.ts'
import type { Session } from '../session/index.ts'
import { LoopAgent } from './agent.ts'
import { LoopError } from './errors.ts'
import type { LoopLimits } from './host.ts'
import { Lease } from './lease.ts'

/** What one agent is made of. */
export interface LifeParts {
  readonly session: Session
  readonly owner: Context
  readonly options: AgentOptions
  readonly source: SessionStartSource
  readonly signal?: AbortSignal | undefined
  readonly notices?: readonly string[] | undefined
  /** Gives a session back that was never published. */
  release?(): void
}

/** Where the lives of one loop are led. */
export interface LifePlace {
  readonly ctx: Context
  readonly limits: LoopLimits
  readonly lives: Set<Life>
}

/**
 * One agent from its making to its end.
 *
 * Nobody sees it before `publish`; whatever fails until then leaves no trace. The end is one, whoever asks for it
 * first: the holder of the handle, the plugin that owns the agent, or the loop.
 */
export class Life implements AgentHandle {
  readonly agent: LoopAgent
  readonly notices: readonly string[]
  readonly #place: LifePlace
  readonly #parts: LifeParts
  readonly #lease: Lease
  #detachSession: (() => void) | undefined
  #detachAgent: (() => void) | undefined
  #isOpen = false
  #end: Promise<void> | undefined

  constructor(place: LifePlace, parts: LifeParts) {
    const { session, owner, options } = parts
    assertOptions(options)
    if (session.fold(turnCursor).openTurn !== undefined)
      throw new LoopError('OPEN_TURN', `session "${session.id}" is in the middle of a turn`)
    place.ctx.fiber.assertActive(`make agent "${session.id}"`)
    owner.fiber.assertActive(`make agent "${session.id}"`)
    this.#place = place
    this.#parts = parts
    this.notices = parts.notices ?? []
    this.agent = new LoopAgent({ ctx: place.ctx, session, options, limits: place.limits })
    // Behind the agent's scope: what was made last is undone first, and the agent must end before its scope.
    this.#lease = new Lease(session.id, [place.ctx, owner], {
      signal: parts.signal,
      onUnload: () => this.dispose(),
    })
    place.lives.add(this)
  }

  /** Runs `setup` on the agent's own context, as long as nobody aborts, and then publishes. */
  async compose(setup: AgentSetup | undefined): Promise<void> {
    const result = await this.#lease.race(() => setup?.(this.agent.ctx))
    if (result !== undefined) result.commit()
    this.publish()
  }

  /** Makes the agent known, all at once: a listener that throws, or ends a plugin that owns it, undoes it. */
  publish(): void {
    const { agent } = this
    const { session, owner, source } = this.#parts
    const { ctx } = this.#place
    const { driver } = LoopAgent.partsOf(agent)
    const { signal } = this.#lease
    signal.throwIfAborted()
    // Entered through the agent's own context: its session events are for its own scope.
    this.#detachSession = agent.ctx.sessions.enter(session)
    this.#detachAgent = ctx.agents.enter(agent, owner.agent)
    ctx.sessions.announce(session)
    signal.throwIfAborted()
    ctx.agents.announce(agent)
    signal.throwIfAborted()
    this.#isOpen = true
    driver.open()
    agentEvents(ctx, agent).emit('agent/session-start', { source })
    signal.throwIfAborted()
    driver.wakeEarly()
    this.#lease.detachCaller()
  }

  /**
   * Resolves after everything of the agent is undone; all callers share one end. Code that the agent itself runs is
   * not made to wait: it would wait for itself.
   */
  dispose(): Promise<void> {
    const end = this.end()
    const { ctx } = this.#place
    if (!ctx.agents.isInside(this.agent)) return end
    end.catch((error: unknown) => ctx.fiber.report(error, `disposing agent ${this.agent.id}`))
    return Promise.resolve()
  }

  get isEnding(): boolean {
    return this.#end !== undefined
  }

  end(): Promise<void> {
    if (this.#end === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      // Set before it begins: a listener on the way may ask for the end too.
      this.#end = promise
      resolve(this.#run())
    }
    return this.#end
  }

  /** Synchronous up to the scope, for a life that was never opened. */
  async #run(): Promise<void> {
    const { agent } = this
    const { session, release } = this.#parts
    const { ctx, lives } = this.#place
    const { scope, driver } = LoopAgent.partsOf(agent)
    const errors: unknown[] = []
    const attempt = async (step: () => Promise<unknown>): Promise<void> => {
      await step().catch((error: unknown) => errors.push(error))
    }
    this.#lease.end(new Error(`agent "${agent.id}" is disposed`))
    if (this.#isOpen) await attempt(() => driver.end())
    this.#detachAgent?.()
    if (this.#isOpen) await attempt(() => ctx.sessions.flush(session))
    driver.close()
    this.#detachSession?.()
    if (!this.#isOpen) release?.()
    await attempt(() => scope.dispose())
    lives.delete(this)
    this.#lease.release()
    if (errors.length > 0) throw joinErrors(errors, `disposing agent "${agent.id}" failed`)
  }
}

function assertOptions({ maxTokens }: AgentOptions): void {
  if (maxTokens === undefined || (Number.isSafeInteger(maxTokens) && maxTokens > 0)) return
  throw new TypeError(`maxTokens is ${String(maxTokens)}, not a positive whole number`)
}
