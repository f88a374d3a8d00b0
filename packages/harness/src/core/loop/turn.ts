import type { AgentCancelCause, InboxTarget, TurnEndReason, UserMessage } from '@dsh/protocol'
import type { PreStepDecision } from '../agent/index.ts'
import { turnCursor } from '../session/index.ts'
import type { Phase, Running } from './activity.ts'
import type { LoopHost } from './host.ts'
import { offerNamedTools } from './named-tools.ts'
import { toTurnFailure, turnEndReason } from './outcome.ts'
import type { TurnOutcome } from './outcome.ts'
import { RequestBuilder } from './request.ts'
import { nextSnapshot } from './runtime-context.ts'
import { runStep } from './step.ts'
import type { StepResult } from './step.ts'

/** `TurnOutcome` while it is made. */
type Outcome = { -readonly [Key in keyof TurnOutcome]: TurnOutcome[Key] }

/**
 * The turns of one agent, one after another.
 *
 * Each 'turn/start' gets exactly one 'turn/end', and inside each 'step/start' one 'step/end', whatever happens. Every
 * await is followed by a look at the turn's signal, so nothing is begun or logged for a turn that was cancelled.
 * Observers may throw as they like; what a policy throws ends the turn, never the driver.
 */
export class Turns {
  readonly #host: LoopHost
  readonly #requests: RequestBuilder
  /** The end of a turn that the log refused. */
  #unwritten: { readonly turn: number; readonly reason: TurnEndReason } | undefined

  constructor(host: LoopHost) {
    this.#host = host
    this.#requests = new RequestBuilder(host)
  }

  /** Never rejects. Gives whether another turn may follow by itself. */
  async run(run: Running): Promise<boolean> {
    const { signal } = run.abort
    run.step = 0
    run.stopping = true
    if (signal.aborted || !this.#begin(run)) return false
    run.stopping = false
    const outcome: Outcome = { blocked: false, truncated: false }
    let mayGoOn = false
    try {
      mayGoOn = await this.#steps(run, outcome)
    } catch (error) {
      run.stopping = true
      if (signal.aborted) outcome.cause = signal.reason as AgentCancelCause
      else this.#fail(run, outcome, error)
    } finally {
      run.stopping = !mayGoOn
      if (!this.#end(run, run.turn, turnEndReason(outcome))) {
        run.stopping = true
        mayGoOn = false
      }
    }
    const isDurable = await this.#flush(run)
    if (!isDurable) run.wakeRequested = false
    return mayGoOn && isDurable
  }

  /** A live report, beside or instead of what the log says. */
  report(error: unknown, phase: Phase): void {
    const { turn, step } = phase.kind === 'running' ? phase : { turn: 0, step: 0 }
    this.#host.events.emit('agent/error', { turn, step, error })
  }

  async #steps(run: Running, outcome: Outcome): Promise<boolean> {
    const { events, inbox } = this.#host
    const { signal } = run.abort
    // Whether the model has yet to see the results of its calls.
    let owed = false
    for (let target: InboxTarget = 'next-turn'; ; target = 'next-step') {
      signal.throwIfAborted()
      run.step++
      const batch = await this.#preStep(run, target)
      if (batch === undefined) {
        outcome.blocked = true
        return false
      }
      if (batch.length === 0 && !owed) {
        run.claimed = []
        return run.step > 1
      }
      const result = await this.#step(run, batch)
      signal.throwIfAborted()
      outcome.truncated ||= result.truncated
      owed = result.owed
      if (owed || inbox.nextStep.length > 0) continue
      await events.serial('agent/turn-stopping', { turn: run.turn, signal })
      signal.throwIfAborted()
      if (inbox.nextStep.length === 0) return true
    }
  }

  /** What enters the next step; undefined where a policy rejects it. */
  async #preStep(run: Running, target: InboxTarget): Promise<readonly UserMessage[] | undefined> {
    const { ctx, agent, session, events, inbox } = this.#host
    const { turn, step } = run
    const { signal } = run.abort
    const messages = inbox.claim(target, turn)
    run.claimed = messages
    run.steered = false
    const contexts = await ctx.systemPrompt.renderContexts({ scope: agent, agent, signal })
    signal.throwIfAborted()
    const enter = (): Promise<PreStepDecision> => {
      const isEmptyTurn = step === 1 && messages.length === 0
      // Judged when the policies before this one are through: a compaction among them may have removed the last one.
      const snapshot = isEmptyTurn ? undefined : nextSnapshot(session, contexts)
      const batch = snapshot === undefined ? messages : [...messages, snapshot]
      return Promise.resolve({ kind: 'enter', messages: batch })
    }
    const decision = await events.waterfall('agent/pre-step', { messages, turn, step, signal }, enter)
    signal.throwIfAborted()
    return decision.kind === 'reject' ? undefined : decision.messages
  }

  async #step(run: Running, batch: readonly UserMessage[]): Promise<StepResult> {
    const { session } = this.#host
    const { turn, step } = run
    const { signal } = run.abort
    session.append('step/start', { turn, step })
    try {
      for (const message of batch) {
        session.append('user/message', message, { surfaceOp: 'append' })
        run.claimed = run.claimed.filter(({ id }) => id !== message.id)
      }
      // What a listener left out was dealt with by leaving it out.
      run.claimed = []
      offerNamedTools(this.#host, batch)
      signal.throwIfAborted()
      return await runStep(this.#host, this.#requests, { turn, step, signal })
    } finally {
      session.append('step/end', { turn, step })
    }
  }

  #begin(run: Running): boolean {
    const { session } = this.#host
    const late = this.#unwritten
    if (late !== undefined && !this.#end(run, late.turn, late.reason)) return false
    const turn = session.fold(turnCursor).lastTurn + 1
    try {
      session.append('turn/start', { turn })
    } catch (error) {
      this.report(error, run)
      return false
    }
    run.turn = turn
    return true
  }

  /** Closes what is open, in order. What the log refuses is tried again before the next turn. */
  #end(run: Running, turn: number, reason: TurnEndReason): boolean {
    const { session } = this.#host
    try {
      const { openStep } = session.fold(turnCursor)
      if (openStep !== undefined) session.append('step/end', { turn, step: openStep })
      session.append('turn/end', { turn, reason })
      this.#unwritten = undefined
      return true
    } catch (error) {
      this.#unwritten = { turn, reason }
      this.report(error, run)
      return false
    }
  }

  /** The reason is fixed before anybody hears of it: a listener that cancels then comes too late. */
  #fail(run: Running, outcome: Outcome, error: unknown): void {
    outcome.failure = toTurnFailure(error)
    this.report(error, run)
  }

  /** A turn counts as done only when it is durable. */
  async #flush(run: Running): Promise<boolean> {
    try {
      await this.#host.ctx.sessions.flush(this.#host.session)
      return true
    } catch (error) {
      this.report(error, run)
      return false
    }
  }
}
