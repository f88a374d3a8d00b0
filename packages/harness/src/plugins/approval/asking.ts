import { createHash, randomUUID } from 'node:crypto'
import type { Agent } from '../../core/agent/index.ts'
import { scopeTarget } from '../../core/scope/index.ts'
import { turnCursor } from '../../core/session/index.ts'
import type { Approval, ApprovalOutcome, ApprovalRequest } from '../../core/tools/index.ts'
import { HarnessError } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { ApprovalConfig } from './config.ts'
import { approvalOutcomes } from './events.ts'
import type { ApprovalAnswer, ApprovalQuestion, Permissions } from './service.ts'

interface Decision {
  readonly outcome: ApprovalOutcome
  readonly reason?: string
}

const neverReason = 'approvals are off in this session'
const otherArgumentsReason = 'the answer was for other arguments'

/** Puts calls to whoever answers `approval/request`, and logs question and decision. Anything unclear is a refusal. */
export class Asking implements Approval {
  readonly #ctx: Context
  readonly #config: ApprovalConfig
  readonly #permissions: Permissions
  readonly #end = new AbortController()

  constructor(ctx: Context, config: ApprovalConfig, permissions: Permissions) {
    this.#ctx = ctx
    this.#config = config
    this.#permissions = permissions
  }

  /** Rejects outside of a turn, and where the log takes no event. */
  async request(request: ApprovalRequest): Promise<Decision> {
    const { agent, toolName, callId, arguments: args = null, reason, signal } = request
    if (agent === undefined) return { outcome: 'unavailable' }
    const { session } = agent
    if (session.fold(turnCursor).openTurn === undefined)
      throw new HarnessError(
        'APPROVAL_OUTSIDE_TURN',
        `an approval of "${toolName}" is asked outside of a turn`,
      )
    const id = randomUUID()
    const digest = createHash('sha256').update(JSON.stringify(args)).digest('hex')
    const told = { id, toolName, ...(callId && { callId }), digest, ...(reason && { reason }) }
    session.append('approval/asked', told)
    const given = signal === undefined ? [] : [signal]
    const question = {
      ...told,
      agent,
      arguments: args,
      signal: AbortSignal.any([this.#end.signal, ...given]),
    }
    const decision = await this.#decide(agent, question)
    const { outcome, reason: why } = decision
    session.append('approval/decided', { id, outcome, ...(why && { reason: why }) })
    return decision
  }

  /** Questions that are open are given up, and later ones at once. */
  close(): void {
    this.#end.abort()
  }

  async #decide(agent: Agent, question: ApprovalQuestion): Promise<Decision> {
    if (question.signal.aborted) return { outcome: 'cancelled' }
    if (this.#permissions.policyOf(agent.session) === 'never')
      return { outcome: 'rejected', reason: neverReason }
    if (this.#config.yes) return { outcome: 'allowed-once' }
    return await untilAborted(question.signal, () => this.#answer(agent, question))
  }

  async #answer(agent: Agent, question: ApprovalQuestion): Promise<Decision> {
    try {
      const nobody = async (): Promise<undefined> => undefined
      const answer = await this.#ctx.waterfall(scopeTarget(agent), 'approval/request', question, nobody)
      return readAnswer(answer, question)
    } catch (error) {
      this.#ctx.fiber.report(error, 'approval/request')
      return { outcome: 'unavailable' }
    }
  }
}

function readAnswer(answer: ApprovalAnswer | undefined, question: ApprovalQuestion): Decision {
  const { outcome, reason, digest } = (answer ?? {}) as Partial<ApprovalAnswer>
  if (outcome === undefined || !approvalOutcomes.includes(outcome)) return { outcome: 'unavailable' }
  if (digest !== undefined && digest !== question.digest)
    return { outcome: 'unavailable', reason: otherArgumentsReason }
  return typeof reason === 'string' && reason !== '' ? { outcome, reason } : { outcome }
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
