import type { SessionEvent, StreamChunk, TurnEndReason } from '@dsh/protocol'
import { isSurfaceEvent, SurfaceManager } from '../../core/session/index.ts'
import type { SessionView } from '../../core/session/index.ts'
import type { LoggedRequest } from '../time-travel/index.ts'
import type {} from '../approval/events.ts'
import type { RecordedMessage, RecordedPermission, RecordedReplacement, RecordedResult } from './recording.ts'
import { replacementOf } from './replaced.ts'
import { resultOf } from './tool-result.ts'

/** What happened between a request and the next one. */
export interface Stretch {
  readonly entered: RecordedMessage[]
  readonly chunks: StreamChunk[]
  readonly results: RecordedResult[]
  readonly replaced: RecordedReplacement[]
  permission: RecordedPermission
  /** Of the last one in a turn. */
  end: TurnEndReason | undefined
}

/** The stretch of each request, in one pass over the log. */
export function stretchesOf(session: SessionView, logged: readonly LoggedRequest[]): readonly Stretch[] {
  const reader = new StretchReader(logged)
  for (const event of session.since(0)) reader.read(event)
  return reader.stretches
}

interface CallText {
  readonly name: string
  readonly arguments: string
}

class StretchReader {
  readonly stretches: readonly Stretch[]
  readonly #logged: readonly LoggedRequest[]
  readonly #surface = new SurfaceManager()
  readonly #calls = new Map<string, CallText>()
  #permission: RecordedPermission = {}
  #at = -1

  constructor(logged: readonly LoggedRequest[]) {
    this.#logged = logged
    this.stretches = logged.map(() => ({
      entered: [],
      chunks: [],
      results: [],
      replaced: [],
      permission: {},
      end: undefined,
    }))
  }

  read(event: SessionEvent): void {
    for (; (this.#logged[this.#at + 1]?.from ?? Infinity) <= event.seq; this.#at++) {
      const next = this.stretches[this.#at + 1]
      if (next !== undefined) next.permission = this.#permission
    }
    this.#readHistory(event)
    this.#readPermission(event)
    const [stretch, place] = [this.stretches[this.#at], this.#logged[this.#at]]
    if (stretch !== undefined && place !== undefined) this.#take(event, stretch, place)
  }

  #readHistory(event: SessionEvent): void {
    const replacement = isSurfaceEvent(event) ? replacementOf(event, this.#surface) : undefined
    this.#surface.append(event)
    if (replacement === undefined) return
    // What is replaced after a request was made is missing from the next one.
    const isMade = event.seq >= (this.#logged[this.#at]?.seq ?? 0)
    this.stretches[isMade ? this.#at + 1 : this.#at]?.replaced.push(replacement)
  }

  #readPermission(event: SessionEvent): void {
    if (event.type === 'sandbox/mode') this.#permission = { ...this.#permission, mode: event.data.mode }
    if (event.type === 'approval/policy')
      this.#permission = { ...this.#permission, policy: event.data.policy }
  }

  #take(event: SessionEvent, stretch: Stretch, place: LoggedRequest): void {
    switch (event.type) {
      case 'user/message': {
        const { content, source } = event.data
        if (event.surfaceOp === 'append' && event.seq < place.seq) stretch.entered.push({ content, source })
        return
      }
      case 'assistant/chunk':
        stretch.chunks.push(event.data.chunk)
        return
      case 'assistant/message':
        for (const block of event.data.message.content) {
          if (block.type === 'tool-call') this.#calls.set(block.id, block)
        }
        return
      case 'tool/result':
        if (event.surfaceOp === 'append') stretch.results.push(toResult(event, this.#calls))
        return
      case 'turn/end':
        if (event.data.turn === place.turn) stretch.end = event.data.reason
    }
  }
}

function toResult(
  { data }: SessionEvent<'tool/result'>,
  calls: ReadonlyMap<string, CallText>,
): RecordedResult {
  const [{ toolCallId: callId }] = data.message.content
  const { name, arguments: args } = calls.get(callId) ?? { name: '', arguments: '' }
  return { callId, name, arguments: args, ...resultOf(data) }
}
