import { textOf } from './transcript.ts'
import type { SessionEvent, TokenUsage, TurnEndReason } from '@dsh/protocol'

type Counts = { -readonly [Key in keyof TokenUsage]: TokenUsage[Key] }

/** What one run came to, counted from the events of that run alone. */
export class Tally {
  /** The end of the last turn; undefined while it is open or none began. */
  end: TurnEndReason | undefined
  hasBegun = false
  /** An answer of the model arrived whole. */
  hasAnswer = false
  /** The text of the last assistant message of the last turn. */
  answer = ''
  readonly usage: Counts = { inputTokens: 0, outputTokens: 0 }
  #usageSeen = false

  observe(event: SessionEvent): void {
    switch (event.type) {
      case 'turn/start':
        this.hasBegun = true
        this.end = undefined
        this.answer = ''
        return
      case 'turn/end':
        this.end = event.data.reason
        return
      case 'assistant/chunk':
        return this.#observeChunk(event.data.chunk)
      case 'assistant/message': {
        const { message, usage } = event.data
        this.hasAnswer = true
        this.answer = textOf(message.content)
        // A usage that came as a chunk is counted there, with those of failed attempts.
        if (!this.#usageSeen && usage !== undefined) this.#add(usage)
        this.#usageSeen = false
        return
      }
      default:
    }
  }

  #observeChunk(chunk: SessionEvent<'assistant/chunk'>['data']['chunk']): void {
    if (chunk.type === 'usage') {
      this.#add(chunk.usage)
      this.#usageSeen = true
    }
    const hasFailed =
      chunk.type === 'finish' && (chunk.reason.kind === 'error' || chunk.reason.kind === 'aborted')
    if (hasFailed) this.#usageSeen = false
  }

  #add(usage: TokenUsage): void {
    for (const [key, count] of Object.entries(usage) as [keyof TokenUsage, number][])
      this.usage[key] = (this.usage[key] ?? 0) + count
  }
}
