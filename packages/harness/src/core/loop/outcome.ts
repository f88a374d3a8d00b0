import type { AgentCancelCause, LlmFailure, TurnEndReason } from '@dsh/protocol'
import { toLlmFailure } from '../llm/index.ts'
import { readThrown } from '../tools/index.ts'

/** What happened to a turn. */
export interface TurnOutcome {
  readonly cause?: AgentCancelCause | undefined
  readonly failure?: LlmFailure | undefined
  readonly blocked: boolean
  /** Some answer hit the output limit. */
  readonly truncated: boolean
}

/** Of several things that happened to one turn, the strongest is its reason. */
export function turnEndReason(outcome: TurnOutcome): TurnEndReason {
  const { cause, failure, blocked, truncated } = outcome
  if (cause !== undefined) return { kind: 'aborted', reason: cause }
  if (failure !== undefined) return { kind: 'error', error: failure }
  if (blocked) return { kind: 'blocked' }
  return truncated ? { kind: 'max-tokens' } : { kind: 'completed' }
}

/** The facts of a failed model request, or, for anything else that was thrown, its message with those behind it. */
export function toTurnFailure(error: unknown): LlmFailure {
  return isLlmError(error) ? toLlmFailure(error) : { message: errorChain(error), code: 'UNKNOWN' }
}

function isLlmError(error: unknown): boolean {
  try {
    return Object.getOwnPropertyDescriptor(error, 'failure')?.value !== undefined
  } catch {
    return false
  }
}

const maxCauses = 8

function errorChain(error: unknown): string {
  const messages: string[] = []
  let next: unknown = error
  while (next !== undefined && messages.length < maxCauses) {
    messages.push(readThrown(next).message)
    next = causeOf(next)
  }
  return messages.join(': ')
}

function causeOf(error: unknown): unknown {
  try {
    return (error as { readonly cause?: unknown }).cause
  } catch {
    return undefined
  }
}
