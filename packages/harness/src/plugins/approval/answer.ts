import type { ApprovalOutcome } from '../../core/tools/index.ts'
import { isText } from '../../kernel/index.ts'
import { approvalOutcomes, approvalScopes } from './events.ts'
import type { ApprovalScope, PermissionRule } from './events.ts'
import type { ApprovalAnswer, ApprovalQuestion } from './service.ts'

/** What came of a question, as the log keeps it. */
export interface Decision {
  readonly outcome: ApprovalOutcome
  readonly scope?: ApprovalScope
  readonly rules?: readonly PermissionRule[]
  /** For the model. */
  readonly reason?: string
}

const otherArgumentsReason = 'the answer was for other arguments'
const otherQuestionReason = 'the answer was for another question'
const notOfferedReason = 'the answer chose what was not offered'

/** What an answer says. One that cannot be understood, or was given to something else, allows nothing. */
export function readAnswer(answer: ApprovalAnswer, question: ApprovalQuestion): Decision {
  const { outcome, reason, replacement, id, digest } = (answer ?? {}) as Partial<ApprovalAnswer>
  if (outcome === undefined || !approvalOutcomes.includes(outcome)) return { outcome: 'unavailable' }
  if (id !== undefined && id !== question.id) return { outcome: 'unavailable', reason: otherQuestionReason }
  if (digest !== undefined && digest !== question.digest)
    return { outcome: 'unavailable', reason: otherArgumentsReason }
  const said = isText(reason) ? { reason } : {}
  if (outcome === 'rejected' && isText(replacement)) return { outcome, reason: replacementText(replacement) }
  return outcome === 'allowed-once' ? { outcome, ...said, ...chosen(answer, question) } : { outcome, ...said }
}

/** The scope, where it is more than once, with what was chosen; or a refusal. */
function chosen(
  { scope = 'once', proposal = 0 }: ApprovalAnswer,
  { proposals }: ApprovalQuestion,
): Partial<Decision> {
  if (scope === 'once') return {}
  const offered = proposals[proposal]
  if (!approvalScopes.includes(scope) || offered === undefined)
    return { outcome: 'unavailable', reason: notOfferedReason }
  return { scope, rules: offered.rules }
}

function replacementText(command: string): string {
  return `call it again as \`${command}\``
}
