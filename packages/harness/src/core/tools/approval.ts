import type { Context } from '../../kernel/index.ts'
import { scopeOfCall } from './registry.ts'
import { readThrown } from './thrown.ts'
import type { ApprovalOutcome, ApprovalRequest, PreToolDecision, ToolExecution } from './tool.ts'

/** What policy says of a call before its guards are asked. */
export type Verdict =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly reason: string }
  | { readonly kind: 'aborted' }

const allow: Verdict = { kind: 'allow' }

const deniedText = 'denied by policy'
const noAgentText = 'this call needs an approval, but belongs to no agent that could ask for it'
const noServiceText = 'this call needs an approval, but no approval service is loaded'
const denialTexts: Record<Exclude<ApprovalOutcome, 'allowed-once'>, string> = {
  rejected: 'the user rejected this call',
  cancelled: 'the approval of this call was cancelled',
  unavailable: 'this call needs an approval, but nobody is there to give it',
}

/** Turns a decision into a verdict, asking whoever answers approvals where it says so. Anything unclear is a denial. */
export async function settleDecision(
  ctx: Context,
  execution: ToolExecution,
  decision: PreToolDecision,
): Promise<Verdict> {
  const { kind, reason } = (decision ?? {}) as { readonly kind?: unknown; readonly reason?: unknown }
  const why = typeof reason === 'string' && reason !== '' ? reason : undefined
  switch (kind) {
    case 'allow':
      return allow
    case 'deny':
      return deny(why ?? deniedText)
    case 'ask':
      return ask(ctx, execution, why)
    default:
      throw new TypeError('a tools/pre-execute listener gave no decision')
  }
}

async function ask(ctx: Context, execution: ToolExecution, reason: string | undefined): Promise<Verdict> {
  const { signal } = execution
  const agent = scopeOfCall(execution)
  if (agent === undefined) return deny(noAgentText)
  const approval = ctx.get('approval')
  if (approval === undefined) return deny(noServiceText)
  const request = {
    toolName: execution.name,
    callId: execution.callId,
    arguments: execution.arguments,
    token: execution.token,
    ...(reason === undefined ? {} : { reason }),
    signal,
    agent,
  }
  try {
    const { outcome, reason: detail } = await approval.request(request as ApprovalRequest)
    if (signal.aborted) return { kind: 'aborted' }
    return outcome === 'allowed-once' ? allow : deny(denialTexts[outcome] ?? denialTexts.unavailable, detail)
  } catch (error) {
    return signal.aborted ? { kind: 'aborted' } : deny(denialTexts.unavailable, readThrown(error).message)
  }
}

function deny(text: string, detail?: string): Verdict {
  return { kind: 'deny', reason: detail === undefined || detail === '' ? text : `${text}: ${detail}` }
}
