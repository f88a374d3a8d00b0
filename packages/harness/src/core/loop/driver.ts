import type { AgentCancelCause, InboxTarget, UserMessage } from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import type { Disposer } from '../../kernel/index.ts'
import { AgentError } from '../agent/index.ts'
import type { AgentStatus, CancelOptions } from '../agent/index.ts'
import { idle, startMaintenance, startRunning } from './activity.ts'
import type { Maintenance, Phase, Running } from './activity.ts'
import type { LoopHost } from './host.ts'
import { Turns } from './turn.ts'

/** Before publication waking input waits; from the beginning of the disposal on nothing is woken any more. */
type Gate = 'closed' | 'open' | 'ending' | 'ended'

/**
 * Decides when an agent runs: who wakes it, what stops it, and what follows.
 *
 * There is one activity at a time, turns or maintenance. Input that wakes is never left behind: a running driver takes
 * it itself, or, where it will stop, starts again right after.
 */
export class Driver {
  readonly #host: LoopHost
  readonly #turns: Turns
  readonly #statuses: AgentStatus[] = []
  #gate: Gate = 'closed'
  #holds = 0
  /** Waking input came while nothing may begin. */
  #isWakeHeld = false
  #phase: Phase = idle
  #activity: Promise<unknown> = Promise.resolve()

  constructor(host: LoopHost) {
    this.#host = host
    this.#turns = new Turns(host)
  }

  get status(): AgentStatus {
    return this.#phase.kind === 'running' ? 'running' : 'idle'
  }

  /** From here on waking input runs; what came before is held until `wakeEarly`. */
  open(): void {
    this.#gate = 'open'
  }

  wakeEarly(): void {
    if (this.#phase.kind === 'maintenance') this.#phase.wakeRequested ||= this.#isWakeHeld
    else this.#wakeHeld()
  }

  /** Nothing begins until the function it gives is called. Throws AGENT_BUSY unless the agent is idle. */
  hold(): Disposer {
    this.#assertIdle()
    let isHeld = true
    this.#holds++
    return () => {
      if (isHeld) this.#holds--
      isHeld = false
      this.#wakeHeld()
    }
  }

  get #mayStart(): boolean {
    return this.#gate === 'open' && this.#holds === 0 && this.#phase.kind === 'idle'
  }

  #wakeHeld(): void {
    if (this.#isWakeHeld && this.#mayStart && this.#host.inbox.hasPending) this.#start()
  }

  #assertIdle(): void {
    if (this.#gate === 'ending' || this.#gate === 'ended') throw this.#disposed()
    const { kind } = this.#phase
    if (kind === 'idle') return
    throw new AgentError('AGENT_BUSY', `agent "${this.#host.agent.id}" is busy: ${kind}`)
  }

  /** Cancels what runs and wakes nothing any more; the inbox is kept. Resolves when nothing runs. */
  async end(): Promise<void> {
    this.#gate = 'ending'
    this.cancel({ kind: 'disposed' }, { keepInbox: true })
    await this.whenIdle()
  }

  /** The session is no longer kept: input is refused. */
  close(): void {
    this.#gate = 'ended'
  }

  send(message: UserMessage, target: InboxTarget, wakeup: boolean): void {
    if (this.#gate === 'ended') throw this.#disposed()
    // Judged before the message is in: an observer of the insertion may cancel.
    const late = wakeup && this.#phase.kind !== 'idle' && this.#phase.abort.signal.aborted
    this.#host.inbox.append(late ? 'next-turn' : target, message)
    if (wakeup) this.#wake(late)
  }

  #wake(late: boolean): void {
    const phase = this.#phase
    if (phase.kind === 'idle') {
      if (this.#mayStart) this.#start()
      else if (this.#gate === 'closed' || this.#gate === 'open') this.#isWakeHeld = true
      return
    }
    if (late && (phase.abort.signal.reason as AgentCancelCause).kind === 'disposed') return
    if (phase.kind === 'maintenance' || late || phase.stopping) phase.wakeRequested = true
    else phase.steered = true
  }

  cancel(cause: AgentCancelCause, options: CancelOptions = {}): void {
    if (this.#gate === 'ended') return
    const reason = adopt(cause)
    const { events, inbox } = this.#host
    const runs = this.#phase.kind !== 'idle' && !this.#phase.abort.signal.aborted
    if (reason.kind !== 'disposed' && (runs || inbox.hasPending))
      events.emit('agent/cancel-requested', { cause: reason })
    if (options.keepInbox !== true) this.#dropPending()
    if (this.#phase.kind !== 'idle') this.#phase.abort.abort(reason)
  }

  #dropPending(): void {
    try {
      this.#host.inbox.clear()
    } catch (error) {
      this.#turns.report(error, this.#phase)
    }
    this.#isWakeHeld = false
    if (this.#phase.kind !== 'idle') this.#phase.wakeRequested = false
  }

  async whenIdle(): Promise<void> {
    while (this.#phase.kind !== 'idle') await this.#activity
  }

  runMaintenance<T>(job: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#assertIdle()
    if (this.#holds > 0) throw new AgentError('AGENT_BUSY', `agent "${this.#host.agent.id}" is busy: held`)
    const phase = startMaintenance()
    this.#phase = phase
    const work = this.#maintain(phase, job)
    this.#activity = work.catch(() => {})
    return work
  }

  async #maintain<T>(phase: Maintenance, job: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { ctx, agent } = this.#host
    try {
      return await ctx.agents.withInitiator(agent, () => job(phase.abort.signal))
    } finally {
      this.#phase = idle
      this.#replay(phase)
    }
  }

  #start(): void {
    const { ctx, agent } = this.#host
    const run = startRunning()
    this.#isWakeHeld = false
    this.#phase = run
    try {
      this.#activity = ctx.agents.withInitiator(agent, () => this.#drive(run))
    } catch (error) {
      // The registry is ending; the input stays in the log.
      this.#phase = idle
      this.#turns.report(error, run)
    }
  }

  /** Everything up to the first claim happens before this gives its promise, so that a send is seen to have begun. */
  async #drive(run: Running): Promise<void> {
    this.#announce('running')
    let wentWell = await this.#turns.run(run)
    while (wentWell && !run.abort.signal.aborted && this.#hasWork(run)) {
      run.abort = new AbortController()
      wentWell = await this.#turns.run(run)
    }
    this.#retire(run)
  }

  /** Injected context alone starts no turn. */
  #hasWork(run: Running): boolean {
    const { nextTurn, nextStep } = this.#host.inbox
    return nextTurn.length > 0 || (run.steered && nextStep.length > 0)
  }

  #retire(run: Running): void {
    const { inbox, events } = this.#host
    run.stopping = true
    const pending = [...inbox.nextStep, ...inbox.nextTurn]
    const stays = pending.length > 0 && !(run.wakeRequested && this.#gate === 'open')
    if (stays || run.claimed.length > 0) events.emit('agent/parked', { pending, returned: run.claimed })
    this.#phase = idle
    this.#announce('idle')
    this.#replay(run)
  }

  #replay(ended: { readonly wakeRequested: boolean }): void {
    const wanted = ended.wakeRequested && this.#host.inbox.hasPending
    if (wanted && this.#mayStart) this.#start()
  }

  /** Each status reaches every listener before the next one, also when a listener wakes the agent. */
  #announce(status: AgentStatus): void {
    this.#statuses.push(status)
    if (this.#statuses.length > 1) return
    for (let next = this.#statuses[0]; next !== undefined; next = this.#statuses[0]) {
      this.#host.events.emit('agent/status', { status: next })
      this.#statuses.shift()
    }
  }

  #disposed(): AgentError {
    return new AgentError('AGENT_DISPOSED', `agent "${this.#host.agent.id}" is disposed`)
  }
}
