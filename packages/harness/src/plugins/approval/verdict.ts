import type { WiderAccess } from '../../core/tools/index.ts'
import type { SandboxMode, SandboxReadiness } from '../sandbox/index.ts'
import type { StoredRule } from './rules-in-force.ts'
import type { ApprovalProposal } from './service.ts'

/** All that the judgement of a deed depends on. */
export interface Circumstances {
  readonly mode: SandboxMode
  readonly sandbox: SandboxReadiness
  /** Those in force, of the session too. */
  readonly rules: readonly StoredRule[]
  /** Of the session; links resolved. */
  readonly workspace: string
  readonly namedHosts: ReadonlySet<string>
  /** Whether what reads `path` may come by what nobody may read. */
  mayReachSecrets(path: string): boolean
  /** Whether `path` runs or configures something, or holds secrets, wherever it lies. */
  isProtected(path: string): boolean
  /** Whether `path` belongs to this program itself, its rules among it: no rule lets that be written. */
  isOwn(path: string): boolean
}

export interface Verdict {
  readonly decision: 'allow' | 'ask' | 'deny'
  /** For people and, where it is refused, for the model. */
  readonly because: string
  readonly rule?: StoredRule
  /** More than the mode gives; for the call alone, once it is allowed. */
  readonly grant?: WiderAccess
  /** To allow it is to let it out of the sandbox, which only a person or a rule can. */
  readonly isEscape?: boolean
  /** What a person may allow beyond the call. */
  readonly proposals?: readonly ApprovalProposal[]
}

/** What was found of a call, and the mode it was found in. */
export interface Judgement {
  readonly verdict: Verdict
  readonly mode: SandboxMode
  /** The files it would write, links resolved. */
  readonly paths: readonly string[]
}

export const allowed: Verdict = { decision: 'allow', because: 'it changes nothing that a mode speaks of' }

const strength = ['allow', 'ask', 'deny'] as const
const width: readonly (WiderAccess | undefined)[] = [undefined, 'workspace-write', 'network', 'full-access']

/** Of a call that does several things: as strict as the strictest, and as wide as the widest of them needs. */
export function judgeAll(verdicts: readonly Verdict[]): Verdict {
  const [first, ...others] = verdicts
  if (first === undefined) return allowed
  if (others.length === 0) return first
  const decision = strength.findLast(each => verdicts.some(verdict => verdict.decision === each)) ?? 'deny'
  const deciding = verdicts.filter(verdict => verdict.decision === decision)
  const grant = width.findLast(each => verdicts.some(verdict => verdict.grant === each))
  const rule = deciding.find(verdict => verdict.rule !== undefined)?.rule
  const proposal = decision === 'ask' ? proposalForAll(deciding) : undefined
  return {
    decision,
    because: [...new Set(deciding.map(({ because }) => because))].join('; '),
    ...(rule && { rule }),
    ...(grant && { grant }),
    ...(verdicts.some(({ isEscape }) => isEscape === true) && { isEscape: true }),
    ...(proposal && { proposals: [proposal] }),
  }
}

function proposalForAll(asked: readonly Verdict[]): ApprovalProposal | undefined {
  const narrowest = asked.map(({ proposals = [] }) => proposals[0])
  if (!narrowest.every(each => each !== undefined)) return undefined
  return {
    text: [...new Set(narrowest.map(({ text }) => text))].join('; '),
    rules: narrowest.flatMap(({ rules }) => rules),
  }
}
