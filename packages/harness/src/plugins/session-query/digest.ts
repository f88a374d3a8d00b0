import type { SessionEvent } from '@dsh/protocol'
import { isSurfaceEvent } from '../../core/session/index.ts'
import { documentOf, noPrompts, queueAfter } from './document.ts'
import type { QueuedPrompts } from './document.ts'
import type { EventSurface, SessionSummary } from './service.ts'
import { emptySummary, summaryAfter } from './summary.ts'

/** What must be known of a log to read on in it. */
export interface DigestState {
  readonly summary: SessionSummary
  readonly queued: QueuedPrompts
}

export const emptyDigest: DigestState = { summary: emptySummary, queued: noPrompts }

/** What there is to find of one event. */
export interface EventDocument {
  readonly seq: number
  readonly type: string
  readonly time: number
  readonly surface: EventSurface
  readonly text: string
}

export interface Digested {
  readonly document?: EventDocument
  /** Events that this one hides from the model. */
  readonly shadowed: readonly number[]
}

const noneShadowed: readonly number[] = []

/** Reads a log event by event. What is wrong with one event costs that event alone. */
export class LogDigest {
  #state: DigestState
  /** Undefined where the reading began in the middle. */
  readonly #nodes: number[] | undefined

  constructor(state: DigestState = emptyDigest, isFromStart = true) {
    this.#state = state
    this.#nodes = isFromStart ? [] : undefined
  }

  get state(): DigestState {
    return this.#state
  }

  /** Undefined for a replacement where the reading began in the middle: only the whole log tells what it hides. */
  next(event: SessionEvent): Digested | undefined {
    const shadowed = this.#shadow(event)
    if (shadowed === undefined) return undefined
    const { summary, queued } = this.#state
    try {
      const text = documentOf(event, queued)
      this.#state = { summary: summaryAfter(summary, event), queued: queueAfter(queued, event) }
      if (text === undefined) return { shadowed }
      const { seq, type, time } = event
      const surface = isSurfaceEvent(event) && event.surfaceOp !== undefined ? 'current' : 'log-only'
      return { document: { seq, type, time, surface, text }, shadowed }
    } catch {
      // Data that is not what its type says: whoever opens the session is told; a search goes on.
      return { shadowed }
    }
  }

  #shadow(event: SessionEvent): readonly number[] | undefined {
    const { surfaceOp } = event
    if (surfaceOp === undefined || !isSurfaceEvent(event)) return noneShadowed
    if (surfaceOp === 'append') {
      this.#nodes?.push(event.seq)
      return noneShadowed
    }
    if (this.#nodes === undefined) return undefined
    const from = this.#nodes.indexOf(surfaceOp.start)
    const to = this.#nodes.indexOf(surfaceOp.end)
    if (from < 0 || to < from) return noneShadowed
    return this.#nodes.splice(from, to - from + 1, event.seq)
  }
}
