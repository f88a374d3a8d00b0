import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import { Service } from '../../kernel/index.ts'
import type { Context, Disposer, PluginObject } from '../../kernel/index.ts'
import { isNotice } from './cut-off.ts'
import { noticeOf } from './notice.ts'
import { examineSession } from './report.ts'
import type { RecoveryReport } from './report.ts'

export type { CutOff, UnfinishedCall } from './cut-off.ts'
export type { Verdict } from './examine.ts'
export type { ExaminedCall, RecoveryReport } from './report.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    recovery: Recovery
  }
}

/**
 * Names what a session had that ended with an earlier process, and whose end its log does not tell: tasks, questions;
 * one line each, for model and person.
 */
export type LostThings = (session: Session) => readonly string[]

/** `ctx.recovery`: what an unclean end left of a session. */
export class Recovery extends Service {
  private readonly own: Context
  private readonly sources = new Set<LostThings>()

  constructor(ctx: Context) {
    super(ctx, 'recovery')
    this.own = ctx
  }

  /** Asks `source` too, for as long as the caller is there. */
  register(source: LostThings): Disposer {
    const { sources } = this
    return this.ctx.effect(() => {
      sources.add(source)
      return () => void sources.delete(source)
    }, 'lost things')
  }

  /** What the model has not been told yet; undefined where the session was not cut off. Writes nothing. */
  report(session: Session, signal?: AbortSignal): Promise<RecoveryReport | undefined> {
    const lost = [...this.sources].flatMap(source => source(session))
    return examineSession(this.own, session, lost, signal)
  }
}

/**
 * Tells a model that goes on after a crash what became of the calls that were cut off, and what was lost with the
 * process: one message, at the beginning of the next turn.
 */
export const recovery: PluginObject = {
  name: 'recovery',
  inject: { required: ['agents'], optional: ['fs'] },
  apply(ctx) {
    const service = new Recovery(ctx)
    /** How long the log was. */
    const resumed = new WeakMap<Agent, number>()
    ctx.on(
      'agent/session-start',
      ({ agent, source }) => {
        if (source === 'resume') resumed.set(agent, agent.session.length)
      },
      { global: true },
    )
    ctx.on(
      'agent/pre-step',
      async ({ agent, signal }, next) => {
        const decision = await next()
        const from = resumed.get(agent)
        if (from === undefined || decision.kind === 'reject') return decision
        const isTold = [...agent.session.since(from)].some(isNotice)
        const report = isTold ? undefined : await service.report(agent.session, signal)
        const notice = report && noticeOf(report)
        // Once the log holds the notice, or nothing had to be told, there is nothing left to tell.
        if (notice === undefined) resumed.delete(agent)
        return notice === undefined ? decision : { kind: 'enter', messages: [notice, ...decision.messages] }
      },
      { global: true },
    )
  },
}
