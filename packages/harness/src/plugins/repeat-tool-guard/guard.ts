import type { CallId, UserMessage } from '@dsh/protocol'
import { textOf } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import { cutText } from '../../core/tools/index.ts'
import type { PreToolDecision, ToolExecution, ToolExecutionResult } from '../../core/tools/index.ts'
import { Chain } from './chain.ts'
import type { Repetition } from './chain.ts'
import { hashOf, likenessOf } from './likeness.ts'
import { askText, denialText, detailText, idleReason, idleText, nudgeText, stopReason } from './text.ts'

export interface GuardConfig {
  /** Rising; at the last one the turn ends. */
  readonly thresholds: readonly number[]
  isWatched(name: string): boolean
}

type Call = Pick<ToolExecution, 'callId' | 'name' | 'arguments' | 'token'>

/** Shown to whoever reads notices. */
const summaryLength = 120

/**
 * What one agent repeats, and what is done about it. In memory alone: whoever goes on with a session says something
 * first, and that begins anew.
 */
export class AgentGuard {
  readonly #agent: Agent
  readonly #config: GuardConfig
  readonly #last: number
  readonly #chain: Chain
  /** The highest count that the model was told of. */
  #told = 0
  #idle = 0
  /** Calls that were refused here, or asked for. */
  readonly #judged = new Set<CallId>()
  #hasCalled = false
  /** The call that a person was asked about, and what came of it. */
  #asked: { readonly token: symbol; readonly count: number; isAllowed: boolean } | undefined

  constructor(agent: Agent, config: GuardConfig) {
    this.#agent = agent
    this.#config = config
    this.#last = config.thresholds.at(-1) ?? Number.POSITIVE_INFINITY
    this.#chain = new Chain(this.#last * 3 + 1)
  }

  /** Counts the call; gives what is to become of it where it must not simply run. */
  judge(call: Call, canAsk: () => boolean): PreToolDecision | undefined {
    this.#hasCalled = true
    if (!this.#config.isWatched(call.name)) return undefined
    const { callId, name, arguments: args } = call
    const likeness = likenessOf(name, args)
    this.#chain.push({ callId, name, arguments: JSON.stringify(args), likeness })
    const repetition = this.#current()
    if (repetition?.kind !== 'call') return undefined
    const { count } = repetition
    if (count < this.#limitOf(repetition)) return undefined
    this.#judged.add(callId)
    if (this.#asked !== undefined || !canAsk()) return { kind: 'deny', reason: denialText(repetition) }
    this.#asked = { token: call.token, count, isAllowed: false }
    return { kind: 'ask', reason: askText(repetition) }
  }

  /** The body of the call is about to run. */
  began({ token }: Pick<Call, 'token'>): void {
    if (this.#asked?.token === token) this.#asked.isAllowed = true
  }

  ended({ callId, name }: Pick<Call, 'callId' | 'name'>, result: ToolExecutionResult): void {
    // What we made of it ourselves tells nothing of the tool.
    if (this.#judged.delete(callId)) return
    if (this.#config.isWatched(name))
      this.#chain.settle(callId, hashOf(textOf(result.content)), result.isError)
  }

  /** Ends the turn where it went in circles too long; else what the model has to be told, if anything. */
  beforeStep(messages: readonly UserMessage[], step: number): UserMessage | undefined {
    if (messages.some(({ source }) => source.kind === 'user')) this.#clear()
    this.#idle = step === 1 || this.#hasCalled ? 0 : this.#idle + 1
    this.#hasCalled = false
    if (this.#idle > 0) return this.#ofIdle()
    const repetition = this.#current()
    if (repetition === undefined || step === 1) return undefined
    const { count } = repetition
    const limit = this.#limitOf(repetition)
    if (count >= limit) return this.#stop(stopReason(repetition))
    const reached = this.#config.thresholds.findLastIndex(threshold => threshold <= count)
    if ((this.#config.thresholds[reached] ?? 0) <= this.#told) return undefined
    this.#told = count
    return notice(reached === 0 ? nudgeText(repetition) : detailText(repetition, limit))
  }

  #ofIdle(): UserMessage | undefined {
    const { thresholds } = this.#config
    if (this.#idle >= this.#last) return this.#stop(idleReason(this.#idle))
    return this.#idle === thresholds[0] ? notice(idleText(this.#idle)) : undefined
  }

  /** What is over is forgotten: the next time begins with the first word about it. */
  #current(): Repetition | undefined {
    const { repetition } = this.#chain
    if (repetition === undefined || repetition.count < (this.#config.thresholds[0] ?? 0)) {
      this.#told = 0
      this.#asked = undefined
      return undefined
    }
    return repetition
  }

  /** Twice as long where results still change, or at least other ways are tried; longer where a person allowed it. */
  #limitOf({ kind, isSame }: Repetition): number {
    if (this.#asked !== undefined) return this.#asked.count + (this.#asked.isAllowed ? this.#last : 1)
    return kind === 'error' || !isSame ? this.#last * 2 : this.#last
  }

  #stop(reason: string): undefined {
    this.#clear()
    this.#agent.cancel({ kind: 'hook', reason }, { keepInbox: true })
  }

  #clear(): void {
    this.#chain.clear()
    this.#told = 0
    this.#idle = 0
    this.#asked = undefined
  }
}

function notice(text: string): UserMessage {
  const [summary = ''] = text.split('\n')
  return createUserMessage({
    content: [{ type: 'text', text }],
    source: {
      kind: 'plugin',
      plugin: 'repeat-tool-guard',
      form: 'notice',
      summary: cutText(summary, summaryLength),
    },
  })
}
