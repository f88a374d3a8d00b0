import type { Agent } from '../../core/agent/index.ts'
import { scopeTarget } from '../../core/scope/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { Approval, ApprovalRequest } from '../../core/tools/index.ts'
import { HarnessError, nearest } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { Asking, neverReason, rulesFileOf, yesReason } from './asking.ts'
import type { ApprovalConfig } from './config.ts'
import type { JudgedCalls } from './enforce.ts'
import type { ApprovalPolicy, PermissionRule } from './events.ts'
import type { Judge } from './judge.ts'
import type { FiledRule, OpenRules, RulesFileState } from './rules-file.ts'
import type { ExplainRequest, Explanation } from './service.ts'
import { sessionGrants } from './session-grants.ts'

interface Parts {
  readonly config: ApprovalConfig
  readonly judge: Judge
  readonly calls: JudgedCalls
  readonly openRules: OpenRules | undefined
}

/** Policies and grants by the log of each session, rules by the file. */
export class LoggedApproval implements Approval {
  private readonly ctx: Context
  private readonly parts: Parts
  private readonly asking: Asking

  constructor(ctx: Context, parts: Parts) {
    this.ctx = ctx
    this.parts = parts
    this.asking = new Asking(ctx, { ...parts, policyOf: ({ session }) => this.policyOf(session) })
  }

  async request(request: ApprovalRequest): ReturnType<Approval['request']> {
    return await this.asking.request(request)
  }

  /** Gives up what is asked. */
  close(): void {
    this.asking.close()
  }

  policyOf(session: Session | undefined): ApprovalPolicy {
    return session?.last('approval/policy')?.data.policy ?? this.parts.config.policy
  }

  setPolicy(session: Session, policy: ApprovalPolicy): void {
    if (session.last('approval/policy')?.data.policy !== policy) session.append('approval/policy', { policy })
  }

  canAnswer(agent: Agent | undefined): boolean {
    const isAsked = this.policyOf(agent?.session) === 'ask' && !this.parts.config.yes
    return isAsked && this.ctx.isHeard('approval/request', scopeTarget(agent))
  }

  grantsOf(session: Session): readonly PermissionRule[] {
    return session.fold(sessionGrants)
  }

  forget(session: Session): void {
    if (this.grantsOf(session).length > 0) session.append('approval/forgotten', {})
  }

  async explain({ session, tool: name, arguments: args }: ExplainRequest): Promise<Explanation> {
    const known = this.ctx.tools.knownNames(null)
    if (!known.has(name))
      throw new HarnessError('UNKNOWN_TOOL', `there is no tool "${name}"${nearest(name, known)}`)
    const { verdict, mode } = await this.parts.judge.judge({ name, arguments: args, session })
    const sandbox = await this.parts.judge.readiness()
    const { decision, because, rule, isEscape } = verdict
    const told = { ...(rule && { rule }), mode, sandbox }
    const refusal = decision === 'ask' ? this.refusalOf(session, isEscape === true) : undefined
    if (refusal !== undefined) return { decision: 'deny', because: `${because}; ${refusal}`, ...told }
    return { decision: decision === 'ask' && this.parts.config.yes ? 'allow' : decision, because, ...told }
  }

  async rules(): Promise<RulesFileState> {
    const file = await this.parts.openRules?.()
    return (await file?.read()) ?? { revision: 0, rules: [], problems: [] }
  }

  async addRules(rules: readonly PermissionRule[]): Promise<readonly FiledRule[]> {
    return await (await rulesFileOf(this.parts)).add(rules)
  }

  async removeRules(ids: readonly string[]): Promise<readonly FiledRule[]> {
    return await (await rulesFileOf(this.parts)).remove(ids)
  }

  /** Why what is asked is refused before anybody hears of it. */
  private refusalOf(session: Session | undefined, isEscape: boolean): string | undefined {
    if (this.policyOf(session) === 'never') return neverReason
    return this.parts.config.yes && isEscape ? yesReason : undefined
  }
}
