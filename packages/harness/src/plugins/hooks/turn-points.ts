import { textOf } from '@dsh/protocol'
import type { UserMessage } from '@dsh/protocol'
import type { PreStepDecision } from '../../core/agent/index.ts'
import type { HookOutcome, HookMoment, SessionHooks } from './session-hooks.ts'
import { contextMessages, goOnMessage } from './message.ts'
import { bounded, noReason, promptBlockedText, roundsText } from './text.ts'

export interface StepBeginning {
  readonly messages: readonly UserMessage[]
  readonly turn: number
  readonly step: number
  /** Of the turn. */
  readonly signal: AbortSignal
  /** Why the session's life began; undefined where nobody heard of it. */
  readonly source: string | undefined
  /** Ends hooks. */
  readonly until: AbortSignal
}

type Next = () => Promise<PreStepDecision>

/** Start of the session, with its first step, and prompts: what hooks say becomes part of the very next request. */
export async function beforeStep(
  hooks: SessionHooks,
  beginning: StepBeginning,
  next: Next,
): Promise<PreStepDecision> {
  const { messages, turn, step, signal, source, until } = beginning
  const moment: HookMoment = { turn, signal: until }
  const { stop } = hooks
  hooks.stop = undefined
  if (stop !== undefined && step > 1) hooks.endTurn(stop.reason)
  signal.throwIfAborted()
  if (!hooks.hasBegun && source !== undefined) {
    const outcome = await hooks.run({ point: 'SessionStart', source }, moment)
    signal.throwIfAborted()
    hooks.hasBegun = true
    hooks.waiting.push(...takeUp(hooks, outcome))
    if (outcome.decision === 'deny') hooks.tell('HOOK_MESSAGE', bounded(outcome.reason ?? noReason))
    signal.throwIfAborted()
  }
  const contexts: UserMessage[] = []
  const prompts = messages.filter(message => message.source.kind === 'user')
  if (prompts.length > 0) {
    const prompt = prompts.map(({ content }) => textOf(content)).join('\n\n')
    const outcome = await hooks.run({ point: 'UserPromptSubmit', prompt }, moment)
    signal.throwIfAborted()
    contexts.push(...takeUp(hooks, outcome))
    signal.throwIfAborted()
    if (outcome.decision === 'deny') {
      hooks.tell('HOOK_DECIDED', promptBlockedText(outcome.reason ?? noReason))
      return { kind: 'reject' }
    }
  }
  const decision = await next()
  if (decision.kind === 'reject') return decision
  const added = [...hooks.waiting.splice(0), ...contexts]
  return added.length === 0 ? decision : { ...decision, messages: [...decision.messages, ...added] }
}

/** Context for the model; ends the turn where a hook wants no more of it. */
function takeUp(hooks: SessionHooks, { contextsById, stop }: HookOutcome): readonly UserMessage[] {
  if (stop !== undefined) hooks.endTurn(stop.reason)
  return contextMessages(contextsById)
}

/** Hooks may keep the turn going, within bounds. */
export async function beforeStop(
  hooks: SessionHooks,
  { turn, signal, until }: Pick<StepBeginning, 'turn' | 'signal' | 'until'>,
): Promise<void> {
  const rounds = hooks.roundsOf(turn)
  const outcome = await hooks.run({ point: 'Stop', isActive: rounds > 0 }, { turn, signal: until })
  if (signal.aborted || outcome.stop !== undefined || outcome.decision !== 'deny') return
  if (rounds >= hooks.maxStopRounds) {
    hooks.tell('HOOK_DECIDED', roundsText(rounds))
    return
  }
  hooks.countRound(turn)
  hooks.agent.steer(goOnMessage(outcome.reason ?? noReason))
}
