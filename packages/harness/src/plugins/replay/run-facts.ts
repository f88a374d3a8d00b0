import { textOf } from '@dsh/protocol'
import type { LlmCallConfig, SessionEvent, TokenUsage, TurnEndReason } from '@dsh/protocol'
import { requestHeader } from '../../core/session/index.ts'
import type { SessionView } from '../../core/session/index.ts'

/** What some turns of a session came to. */
export interface RunFacts {
  readonly turns: number
  readonly requests: number
  readonly steps: readonly StepFacts[]
  /** How often each tool was called. */
  readonly calls: Readonly<Record<string, number>>
  /** From the start of each turn to its end. */
  readonly ms: number
  /** Of each answer, failed ones too, as far as the provider told. */
  readonly usages: readonly RouteUsage[]
  /** The visible text of the last answer. */
  readonly answer: string
  /** How the last turn ended; undefined while it is open. */
  readonly end: TurnEndReason | undefined
}

export interface StepFacts {
  readonly turn: number
  readonly step: number
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
}

export interface RouteUsage {
  readonly provider: string
  readonly model: string
  /** Epoch milliseconds. */
  readonly time: number
  readonly usage: TokenUsage
}

/** The facts of the events from `from` up to, and without, `to`. One pass over them. */
export function runFacts(session: SessionView, from: number, to = session.length): RunFacts {
  const reader = new FactsReader(session.fold(requestHeader, { before: from })?.config)
  for (const event of session.since(from)) {
    if (event.seq >= to) break
    reader.read(event)
  }
  return reader.facts()
}

class FactsReader {
  readonly #steps: StepFacts[] = []
  readonly #calls = new Map<string, number>()
  readonly #usages: RouteUsage[] = []
  #turns = 0
  #requests = 0
  #ms = 0
  #since = 0
  #answer = ''
  #end: TurnEndReason | undefined
  #route: Pick<LlmCallConfig, 'provider' | 'model'>

  constructor(route: LlmCallConfig | undefined) {
    this.#route = route ?? { provider: '', model: '' }
  }

  read(event: SessionEvent): void {
    const { time } = event
    switch (event.type) {
      case 'turn/start':
        this.#turns++
        this.#since = time
        this.#end = undefined
        return
      case 'turn/end':
        this.#ms += Math.max(0, time - this.#since)
        this.#end = event.data.reason
        return
      case 'request/header':
        this.#route = event.data.header.config
        return
      case 'assistant/chunk':
        this.#chunk(event)
        return
      case 'assistant/message':
        if (event.surfaceOp === 'append') this.#step(event)
    }
  }

  #chunk({ time, data: { chunk } }: SessionEvent<'assistant/chunk'>): void {
    const { provider, model } = this.#route
    if (chunk.type === 'usage') this.#usages.push({ provider, model, time, usage: chunk.usage })
    if (chunk.type === 'finish') this.#requests++
  }

  #step({ data: { turn, step, message } }: SessionEvent<'assistant/message'>): void {
    const calls = message.content.filter(block => block.type === 'tool-call')
    for (const { name } of calls) this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1)
    this.#answer = textOf(message.content)
    const named = calls.map(({ name, arguments: text }) => ({ name, arguments: text }))
    this.#steps.push({ turn, step, text: this.#answer, calls: named })
  }

  facts(): RunFacts {
    return {
      turns: this.#turns,
      requests: this.#requests,
      steps: this.#steps,
      calls: Object.fromEntries(this.#calls),
      ms: this.#ms,
      usages: this.#usages,
      answer: this.#answer,
      end: this.#end,
    }
  }
}
