import type { InboxTarget, LlmCallConfig, SessionEvent, UserMessage } from '@dsh/protocol'
import { isBoundary } from './stream.ts'
import { pendingCalls, turnCursor } from './turns.ts'
import type { PendingCall } from './turns.ts'

/** What the turn that a log breaks off in leaves undone. */
export interface OpenTurn {
  readonly turn: number
  readonly step: number | undefined
  /** Unanswered calls of the open step, in the model's order. */
  readonly calls: readonly PendingCall[]
  /** Chunks of the last attempt in the open step that gave no message. */
  readonly attempt: readonly SessionEvent<'assistant/chunk'>[]
  /** Whom the last request went to. */
  readonly route: Pick<LlmCallConfig, 'provider' | 'model'> | undefined
  /** Messages taken from the inbox for a step that they never reached, by where they came from. */
  readonly claimed: Readonly<Record<InboxTarget, readonly UserMessage[]>>
  readonly hasToolStart: boolean
}

/** Undefined where no turn is open. */
export function readTurn(events: readonly SessionEvent[], seedLength?: number): OpenTurn | undefined {
  const reader = new TurnReader(seedLength)
  for (const event of events) reader.read(event)
  return reader.open()
}

class TurnReader {
  readonly #claims: Claims
  #cursor = turnCursor.init(noHeader)
  #calls = pendingCalls.init(noHeader)
  #attempt: SessionEvent<'assistant/chunk'>[] = []
  #route: OpenTurn['route']
  #hasToolStart = false

  constructor(seedLength: number | undefined) {
    this.#claims = new Claims(seedLength ?? 0)
  }

  read(event: SessionEvent): void {
    this.#claims.read(event)
    if (isBoundary(event)) this.#attempt = []
    switch (event.type) {
      case 'turn/start':
      case 'turn/end':
      case 'step/start':
      case 'step/end':
        this.#cursor = turnCursor.apply(this.#cursor, event)
        if (event.type !== 'step/start') this.#calls = pendingCalls.apply(this.#calls, event as never)
        return
      case 'assistant/chunk':
        // A finish that gave no message belongs to an attempt that the next chunk leaves behind.
        if (this.#attempt.at(-1)?.data.chunk.type === 'finish') this.#attempt = []
        this.#attempt.push(event)
        return
      case 'request/header':
        this.#route = event.data.header.config
        return
      case 'tool/start':
        this.#hasToolStart = true
      // fall through
      case 'assistant/message':
      case 'tool/call':
      case 'tool/result':
        this.#calls = pendingCalls.apply(this.#calls, event)
    }
  }

  open(): OpenTurn | undefined {
    const { openTurn: turn, openStep: step } = this.#cursor
    if (turn === undefined) return undefined
    return {
      turn,
      step,
      calls: this.#calls,
      attempt: this.#attempt,
      route: this.#route,
      claimed: this.#claims.lost(),
      hasToolStart: this.#hasToolStart,
    }
  }
}

/** Follows messages from the inbox into a step. */
class Claims {
  readonly #from: number
  #lists: Record<InboxTarget, readonly UserMessage[]> = { 'next-turn': [], 'next-step': [] }
  #claimed: { readonly target: InboxTarget; readonly message: UserMessage }[] = []

  constructor(from: number) {
    this.#from = from
  }

  read(event: SessionEvent): void {
    switch (event.type) {
      case 'session/end-seed':
        if (event.data.inherited !== true) return
        this.#lists = { 'next-turn': [], 'next-step': [] }
        this.#claimed = []
        return
      case 'agent/inbox/spliced':
        if (event.seq >= this.#from) this.#splice(event)
        return
      case 'user/message':
        this.#claimed = this.#claimed.filter(({ message }) => message.id !== event.data.id)
        return
      default:
        // Whatever comes behind the batch of a step shows that the batch was complete.
        if (settling.has(event.type)) this.#claimed = []
    }
  }

  lost(): Record<InboxTarget, UserMessage[]> {
    const of = (target: InboxTarget): UserMessage[] =>
      this.#claimed.filter(claim => claim.target === target).map(({ message }) => message)
    return { 'next-turn': of('next-turn'), 'next-step': of('next-step') }
  }

  #splice({ data }: SessionEvent<'agent/inbox/spliced'>): void {
    const { target, start, removedCount = 0, inserted, outcome } = data
    const list = this.#lists[target]
    const removed = list.slice(start, start + removedCount)
    this.#lists = { ...this.#lists, [target]: list.toSpliced(start, removedCount, ...inserted) }
    if (outcome === undefined) this.#claimed.push(...removed.map(message => ({ target, message })))
  }
}

const settling: ReadonlySet<string> = new Set([
  'turn/start',
  'turn/end',
  'step/end',
  'request/header',
  'request/context',
  'assistant/chunk',
  'assistant/message',
  'tool/call',
  'tool/result',
])

const noHeader = undefined as never
