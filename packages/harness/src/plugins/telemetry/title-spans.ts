import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import type {} from '../title/events.ts'
import { finished, placeAttributes, routeAttributes } from './attributes.ts'
import { Chat } from './chat.ts'
import type { SpanDescription } from './span.ts'

interface OpenRequest {
  readonly event: SessionEvent<'session/title-llm-request'>
  readonly chat: Chat
}

/** Requests for titles: they stand beside the turns. */
export class TitleSpans {
  readonly #header: SessionHeader
  #open: OpenRequest | undefined

  constructor(header: SessionHeader) {
    this.#header = header
  }

  next(event: SessionEvent): readonly SpanDescription[] {
    if (event.type === 'session/title-llm-request')
      this.#open = { event, chat: new Chat(event.seq, event.time) }
    return event.type === 'session/title-llm-result' ? this.#end(event) : none
  }

  #end(event: SessionEvent<'session/title-llm-result'>): readonly SpanDescription[] {
    if (this.#open?.event.seq !== event.data.requestSeq) return none
    const { event: request, chat } = this.#open
    this.#open = undefined
    chat.usage = event.data.usage
    const { route } = request.data
    const id = `${this.#header.id}#${request.seq}`
    const attributes = {
      'gen_ai.operation.name': 'chat',
      ...routeAttributes(route),
      ...chat.attributes,
      ...placeAttributes(this.#header, request.seq, event.seq),
      'dsh.purpose': 'session-title',
    }
    const times = { startTime: request.time, endTime: event.time }
    const error = event.data.problem === undefined ? undefined : 'title_refused'
    return [
      finished({ id, rootId: id, name: `chat ${route.model}`, kind: 'client', ...times, attributes }, error),
    ]
  }
}

const none: readonly SpanDescription[] = []
