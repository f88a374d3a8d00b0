import { createHash, randomUUID } from 'node:crypto'
import type { Agent } from '../../core/agent/index.ts'
import { scopeTarget } from '../../core/scope/index.ts'
import { turnCursor } from '../../core/session/index.ts'
import type { ApprovalRequest } from '../../core/tools/index.ts'
import { HarnessError } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { readAnswer } from './answer.ts'
import type { Decision } from './answer.ts'
import type { ApprovalConfig } from './config.ts'
import type { JudgedCalls } from './enforce.ts'
import type { ApprovalPolicy } from './events.ts'
import type { OpenRules, RulesFile } from './rules-file.ts'
import type { ApprovalQuestion } from './service.ts'
import type { Verdict } from './verdict.ts'

export const neverReason = 'approvals are off in this session; do without it or tell the user'
export const yesReason = '--yes allows nothing beyond the sandbox; do without it or tell the user'
const nobodyReason = 'do without it or tell the user what to allow'

export interface AskingParts {
  readonly config: ApprovalConfig
  readonly calls: JudgedCalls
  readonly openRules: OpenRules | undefined
  policyOf(agent: Agent): ApprovalPolicy
}

/** Puts calls to whoever answers `approval/request`, and logs question and decision. Anything unclear is a refusal. */
export class Asking {
  readonly #ctx: Context
  readonly #parts: AskingParts
  readonly #end = new AbortController()

  constructor(ctx: Context, parts: AskingParts) {
    this.#ctx = ctx
    this.#parts = parts
  }

  /** Rejects outside of a turn, and where the log takes no event. */
  async request(request: ApprovalRequest): Promise<Pick<Decision, 'outcome' | 'reason'>> {
    const { agent, toolName, token } = request
    if (agent === undefined) return { outcome: 'unavailable' }
    const { session } = agent
    if (session.fold(turnCursor).openTurn === undefined)
      throw new HarnessError(
        'APPROVAL_OUTSIDE_TURN',
        `an approval of "${toolName}" is asked outside of a turn`,
      )
    const call = token === undefined ? undefined : this.#parts.calls.get(token)
    const question = this.#questionOf(request, agent, call?.verdict)
    const { id, callId, digest, reason } = question
    session.append('approval/asked', {
      id,
      toolName,
      ...(callId && { callId }),
      digest,
      ...(reason && { reason }),
    })
    const given = await this.#decide(agent, question, call?.verdict)
    const decision = await this.#keep(given, agent)
    session.append('approval/decided', { id, ...decision })
    if (decision.outcome === 'allowed-once' && call !== undefined && token !== undefined) {
      call.isAnswered = true
      if (call.verdict.grant !== undefined) this.#ctx.sandboxPolicy.grant(token, call.verdict.grant)
    }
    return decision
  }

  /** Questions that are open are given up, and later ones at once. */
  close(): void {
    this.#end.abort()
  }

  #questionOf(request: ApprovalRequest, agent: Agent, verdict: Verdict | undefined): ApprovalQuestion {
    const { toolName, callId, arguments: args = null, reason, signal } = request
    const digest = createHash('sha256').update(JSON.stringify(args)).digest('hex')
    const given = signal === undefined ? [] : [signal]
    const view = this.#ctx.tools.get(toolName, agent)?.presentCall?.(args)
    return {
      id: randomUUID(),
      agent,
      toolName,
      ...(callId && { callId }),
      arguments: args,
      digest,
      ...(reason && { reason }),
      ...(view && { view }),
      // Where the verdict was to allow, somebody else asks, and no rule of ours would keep him from it.
      proposals: verdict?.decision === 'ask' ? (verdict.proposals ?? []) : [],
      signal: AbortSignal.any([this.#end.signal, ...given]),
    }
  }

  async #decide(agent: Agent, question: ApprovalQuestion, verdict: Verdict | undefined): Promise<Decision> {
    const { config, policyOf } = this.#parts
    if (question.signal.aborted) return { outcome: 'cancelled' }
    if (policyOf(agent) === 'never') return { outcome: 'rejected', reason: neverReason }
    if (config.yes && verdict?.isEscape === true) return { outcome: 'unavailable', reason: yesReason }
    if (config.yes) return { outcome: 'allowed-once' }
    return await untilAborted(question.signal, () => this.#answer(agent, question))
  }

  async #answer(agent: Agent, question: ApprovalQuestion): Promise<Decision> {
    try {
      const nobody = async (): Promise<undefined> => undefined
      const answer = await this.#ctx.waterfall(scopeTarget(agent), 'approval/request', question, nobody)
      return answer === undefined
        ? { outcome: 'unavailable', reason: nobodyReason }
        : readAnswer(answer, question)
    } catch (error) {
      this.#ctx.fiber.report(error, 'approval/request')
      return { outcome: 'unavailable' }
    }
  }

  /** A rule that cannot be kept counts for the session: less than was allowed, and the person is told. */
  async #keep(decision: Decision, { session }: Agent): Promise<Decision> {
    if (decision.scope !== 'rule' || decision.rules === undefined) return decision
    try {
      const { workspaceRoot: folder } = await this.#ctx.sandboxPolicy.resolve({ session })
      const filed = await (
        await rulesFileOf(this.#parts)
      ).add(decision.rules.map(rule => ({ ...rule, folder })))
      return { ...decision, rules: filed.map(({ rule }) => rule) }
    } catch (error) {
      this.#ctx.fiber.report(error, 'permission rules')
      return { ...decision, scope: 'session' }
    }
  }
}

/** Rejects with NO_RULES_FILE where none is configured. */
export async function rulesFileOf({ openRules }: Pick<AskingParts, 'openRules'>): Promise<RulesFile> {
  if (openRules !== undefined) return await openRules()
  throw new HarnessError('NO_RULES_FILE', 'no file is configured that keeps permission rules')
}

function untilAborted(signal: AbortSignal, ask: () => Promise<Decision>): Promise<Decision> {
  const { promise, resolve } = Promise.withResolvers<Decision>()
  const onAbort = (): void => resolve({ outcome: 'cancelled' })
  signal.addEventListener('abort', onAbort, { once: true })
  // Listened to first: whoever is asked may abort at once.
  void ask()
    .then(resolve)
    .finally(() => signal.removeEventListener('abort', onAbort))
  return promise
}
