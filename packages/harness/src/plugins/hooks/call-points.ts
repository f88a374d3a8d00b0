import { textOf } from '@dsh/protocol'
import { turnCursor } from '../../core/session/index.ts'
import type {
  PostToolDecision,
  PreToolDecision,
  ToolExecution,
  ToolExecutionResult,
} from '../../core/tools/index.ts'
import { inputFor } from './payload.ts'
import { contextMessages } from './message.ts'
import type { HookMoment, HookOutcome, SessionHooks } from './session-hooks.ts'
import { blockedText, deniedText, noReason, secondUpdateText, stoppedText, updatedText } from './text.ts'
import { fromForeignInput, isSameInput, toForeignCall } from './tool-names.ts'
import type { ForeignCall } from './tool-names.ts'

/**
 * Hooks may deny the call, or have it asked for; that they allow it opens nothing. Other arguments are a denial that names
 * them: what the model then calls with them is not changed again.
 */
export async function beforeCall(
  hooks: SessionHooks,
  execution: ToolExecution,
  { until, next }: { readonly until: AbortSignal; next(): Promise<PreToolDecision> },
): Promise<PreToolDecision> {
  const { callId, name, signal } = execution
  const call = foreignCall(hooks, execution)
  const outcome = await hooks.run({ point: 'PreToolUse', call, callId }, momentOf(hooks, until))
  signal.throwIfAborted()
  for (const message of contextMessages(outcome.contextsById)) hooks.agent.inject(message)
  const { decision, reason = noReason, stop } = outcome
  if (stop !== undefined) {
    hooks.endTurn(stop.reason)
    return { kind: 'deny', reason: stoppedText(stop.reason) }
  }
  if (decision === 'deny') return { kind: 'deny', reason: deniedText(reason) }
  const update = updateOf(hooks, { execution, call, outcome })
  if (update !== undefined) {
    hooks.propose(name, update.args)
    return { kind: 'deny', reason: updatedText(update.by, name, update.args) }
  }
  const others = await next()
  if (decision !== 'ask' || others.kind === 'deny') return others
  const reasons = others.kind === 'ask' && others.reason !== undefined ? [others.reason, reason] : [reason]
  return { kind: 'ask', reason: reasons.join('; ') }
}

interface Answered {
  readonly execution: ToolExecution
  readonly call: ForeignCall
  readonly outcome: HookOutcome
}

/** The arguments that a hook wants in place of those of the call, unless they are the same or a hook's own already. */
function updateOf(
  hooks: SessionHooks,
  { execution: { name, arguments: args }, call, outcome: { updatedInput, updatedBy } }: Answered,
): { readonly args: object; readonly by: string } | undefined {
  const isProposal = hooks.takeProposal(name, args)
  if (updatedInput === undefined || updatedBy === undefined) return undefined
  const { id, dialect } = updatedBy
  const shown = inputFor(call, dialect)
  const whole = shown === call.input ? updatedInput : { ...call.input, ...updatedInput }
  const wanted = fromForeignInput(name, whole, args)
  const { input } = toForeignCall(name, wanted as Parameters<typeof toForeignCall>[1], folderOf(hooks))
  if (isSameInput(input, call.input)) return undefined
  if (!isProposal) return { args: wanted, by: id }
  hooks.tell('HOOK_DECIDED', secondUpdateText(id))
  return undefined
}

/** Of calls that did not fail. A hook that objects takes the result's place; one that ends the turn does so behind it. */
export async function afterCall(
  hooks: SessionHooks,
  { execution, result }: { readonly execution: ToolExecution; readonly result: ToolExecutionResult },
  { until, next }: { readonly until: AbortSignal; next(): Promise<PostToolDecision> },
): Promise<PostToolDecision> {
  const { callId, signal } = execution
  const call = foreignCall(hooks, execution)
  const response = textOf(result.content)
  const outcome = await hooks.run({ point: 'PostToolUse', call, callId, response }, momentOf(hooks, until))
  const contexts = contextMessages(outcome.contextsById)
  const { decision, reason = noReason, stop } = outcome
  if (stop !== undefined && !signal.aborted) hooks.stop ??= stop
  if (decision === 'deny')
    return { kind: 'block', feedback: blockedText(reason), additionalContexts: contexts }
  const others = await next()
  if (contexts.length === 0) return others
  return { ...others, additionalContexts: [...contexts, ...(others.additionalContexts ?? [])] }
}

function foreignCall(hooks: SessionHooks, { name, arguments: args }: ToolExecution): ForeignCall {
  return toForeignCall(name, args, folderOf(hooks))
}

function folderOf({ agent }: SessionHooks): string {
  return agent.session.header.cwd ?? '/'
}

function momentOf({ agent }: SessionHooks, until: AbortSignal): HookMoment {
  return { turn: agent.session.fold(turnCursor).openTurn, signal: until }
}
