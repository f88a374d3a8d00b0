import type { AgentCancelCause, InboxTarget, SessionId, UserMessage } from '@dsh/protocol'
import type { Context, Disposer } from '../../kernel/index.ts'
import { agentEvents, Inbox } from '../agent/index.ts'
import type { Agent, AgentOptions, AgentStatus, CancelOptions } from '../agent/index.ts'
import { createScope } from '../scope/index.ts'
import type { Scope } from '../scope/index.ts'
import type { Session } from '../session/index.ts'
import { Driver } from './driver.ts'
import type { LoopLimits } from './host.ts'

export interface LoopAgentParts {
  /** The loop plugin's context; the agent's scope is made below it. */
  readonly ctx: Context
  readonly session: Session
  readonly options: AgentOptions
  readonly limits: LoopLimits
}

/** An agent driven by this loop. Its scope and its driver belong to the life that made it. */
export class LoopAgent implements Agent {
  readonly id: SessionId
  readonly options: AgentOptions
  readonly session: Session
  readonly inbox: Inbox
  readonly ctx: Context
  readonly #scope: Scope
  readonly #driver: Driver

  constructor({ ctx, session, options, limits }: LoopAgentParts) {
    this.id = session.id
    this.options = Object.freeze({ ...options })
    this.session = session
    const events = agentEvents(ctx, this)
    this.inbox = new Inbox(session, {
      inserted: message => events.emit('agent/inbox/inserted', { message }),
      discarded: message => events.emit('agent/inbox/discarded', { message }),
      claimed: (message, turn) => events.emit('agent/inbox/claimed', { message, turn }),
    })
    this.#driver = new Driver({ ctx, agent: this, session, inbox: this.inbox, events, limits })
    this.#scope = createScope(ctx, this)
    this.ctx = this.#scope.ctx
  }

  static partsOf(agent: LoopAgent): { readonly scope: Scope; readonly driver: Driver } {
    return { scope: agent.#scope, driver: agent.#driver }
  }

  get status(): AgentStatus {
    return this.#driver.status
  }

  cancel(cause: AgentCancelCause, options?: CancelOptions): void {
    this.#driver.cancel(cause, options)
  }

  whenIdle(): Promise<void> {
    return this.#driver.whenIdle()
  }

  runMaintenance<T>(job: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#driver.runMaintenance(job)
  }

  hold(): Disposer {
    return this.#driver.hold()
  }

  send(message: UserMessage, target: InboxTarget, wakeup: boolean): void {
    this.#driver.send(message, target, wakeup)
  }

  followup(message: UserMessage): void {
    this.#driver.send(message, 'next-turn', true)
  }

  steer(message: UserMessage): void {
    this.#driver.send(message, 'next-step', true)
  }

  inject(message: UserMessage): void {
    this.#driver.send(message, 'next-step', false)
  }
}
