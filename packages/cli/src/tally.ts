import { tokenUsage } from '@dsh/harness/session'
import type { UsageTally } from '@dsh/harness/session'
import { textOf } from '@dsh/protocol'
import type { SessionEvent, SessionHeader, TokenUsage, TurnEndReason } from '@dsh/protocol'

const noHeader: Partial<SessionHeader> = {}

/** What one run came to, counted from the events of that run alone. */
export class Tally {
  /** The end of the last turn; undefined while it is open or none began. */
  end: TurnEndReason | undefined
  /** The model began to answer, so what it was asked is on the disk. */
  wasAnswered = false
  /** An answer of the model arrived whole. */
  hasAnswer = false
  /** The text of the last assistant message of the last turn. */
  answer = ''
  #usage: UsageTally = tokenUsage.init(noHeader as SessionHeader)

  get usage(): TokenUsage {
    return this.#usage.total
  }

  observe(event: SessionEvent): void {
    switch (event.type) {
      case 'turn/start':
        this.end = undefined
        this.answer = ''
        return
      case 'turn/end':
        this.end = event.data.reason
        return
      case 'assistant/chunk':
        this.wasAnswered = true
      // fall through
      case 'step/start':
        this.#usage = tokenUsage.apply(this.#usage, event)
        return
      case 'assistant/message':
        this.#usage = tokenUsage.apply(this.#usage, event)
        this.hasAnswer = true
        this.answer = textOf(event.data.message.content)
        return
      default:
    }
  }
}
