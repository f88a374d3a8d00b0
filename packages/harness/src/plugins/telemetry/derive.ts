import type { LlmCallConfig, SessionEvent, SessionHeader, TurnEndReason } from '@dsh/protocol'
import type {} from '../retry/events.ts'
import { finished, placeAttributes, routeAttributes } from './attributes.ts'
import type { Attributes } from './attributes.ts'
import { Chat } from './chat.ts'
import type { ParentSpan, SpanDescription } from './span.ts'
import { TitleSpans } from './title-spans.ts'

interface OpenTurn {
  readonly turn: number
  readonly span: ParentSpan
  readonly seq: number
}

interface OpenCall {
  readonly event: SessionEvent<'tool/call'>
  readonly startTime: number
}

/** The spans of a log: turns, and below them requests and tools. Events of before the fork belong to its parent. */
export function deriveSpans(events: Iterable<SessionEvent>, header: SessionHeader): SpanDescription[] {
  const deriver = new SpanDeriver(header)
  const spans: SpanDescription[] = []
  for (const event of events) spans.push(...deriver.next(event))
  return spans
}

/** `deriveSpans`, event by event. What is still open at the end has no span. */
export class SpanDeriver {
  readonly #header: SessionHeader
  #config: LlmCallConfig | undefined
  #turn: OpenTurn | undefined
  #step = 0
  #chat: Chat | undefined
  readonly #calls = new Map<string, OpenCall>()
  readonly #titles: TitleSpans

  /** `config` is that of the last request, where the log is not heard from its beginning. */
  constructor(header: SessionHeader, config?: LlmCallConfig) {
    this.#header = header
    this.#config = config
    this.#titles = new TitleSpans(header)
  }

  /** The spans that this event ends. */
  next(event: SessionEvent): readonly SpanDescription[] {
    if (event.type === 'request/header') this.#config = event.data.header.config
    if (event.seq < (this.#header.seedLength ?? 0) || isReplacement(event)) return none
    switch (event.type) {
      case 'turn/start':
        return this.#startTurn(event)
      case 'turn/end':
        return this.#endTurn(event)
      case 'step/start':
      case 'llm/retry-started':
        return this.#startChat(event)
      case 'assistant/chunk':
        return this.#hearChunk(event)
      case 'assistant/message':
        return this.#endAnswer(event)
      case 'step/end':
        return this.#cutChat(event)
      case 'tool/call':
      case 'tool/start':
        return this.#startTool(event)
      case 'tool/result':
        return this.#endTool(event)
      default:
        return this.#titles.next(event)
    }
  }

  #startTurn(event: SessionEvent<'turn/start'>): readonly SpanDescription[] {
    this.#calls.clear()
    this.#chat = undefined
    const span = { id: this.#idOf(event.seq), name: 'invoke_agent dsh', startTime: event.time }
    this.#turn = { turn: event.data.turn, span, seq: event.seq }
    return none
  }

  #endTurn(event: SessionEvent<'turn/end'>): readonly SpanDescription[] {
    const cut = this.#cutChat(event)
    const turn = this.#turn
    if (turn === undefined) return cut
    const { reason } = event.data
    const error = errorOfTurn(reason)
    const attributes = {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'dsh',
      ...this.#route(),
      ...this.#place(turn.seq, event.seq),
      'dsh.turn.end': reason.kind,
      ...(this.#header.parentSession === undefined
        ? {}
        : { 'dsh.session.parent': this.#header.parentSession }),
    }
    this.#turn = undefined
    const { id } = turn.span
    return [
      ...cut,
      finished({ ...turn.span, rootId: id, kind: 'internal', endTime: event.time, attributes }, error),
    ]
  }

  #startChat(event: SessionEvent<'step/start' | 'llm/retry-started'>): readonly SpanDescription[] {
    const { seq, time } = event
    this.#step = event.data.step
    this.#chat = new Chat(seq, time)
    return none
  }

  #hearChunk(event: SessionEvent<'assistant/chunk'>): readonly SpanDescription[] {
    const { chunk } = event.data
    // A request whose beginning the log does not show begins with what it brings first.
    this.#chat ??= new Chat(event.seq, event.time)
    if (chunk.type === 'usage') this.#chat.usage = chunk.usage
    if (chunk.type !== 'finish') return none
    this.#chat.finish = chunk.reason
    const { kind } = chunk.reason
    return kind === 'error' || kind === 'aborted' ? this.#endChat(event) : none
  }

  #endAnswer(event: SessionEvent<'assistant/message'>): readonly SpanDescription[] {
    if (this.#chat === undefined) return none
    this.#chat.usage ??= event.data.usage
    return this.#endChat(event)
  }

  /** A request that nothing answered any more. */
  #cutChat(event: SessionEvent): readonly SpanDescription[] {
    return this.#chat === undefined ? none : this.#endChat(event, 'interrupted')
  }

  #endChat({ seq, time }: SessionEvent, cut?: string): readonly SpanDescription[] {
    const chat = this.#chat
    this.#chat = undefined
    if (chat === undefined || this.#turn === undefined) return none
    const { model = 'unknown', maxTokens, temperature } = this.#config ?? {}
    const attributes = {
      'gen_ai.operation.name': 'chat',
      ...this.#route(),
      ...(maxTokens === undefined ? {} : { 'gen_ai.request.max_tokens': maxTokens }),
      ...(temperature === undefined ? {} : { 'gen_ai.request.temperature': temperature }),
      ...chat.attributes,
      ...this.#place(chat.seq, seq),
      'dsh.step': this.#step,
    }
    const span = {
      id: this.#idOf(chat.seq),
      name: `chat ${model}`,
      kind: 'client',
      startTime: chat.startTime,
      endTime: time,
      attributes,
    } as const
    return [finished({ ...span, ...this.#below() }, chat.error ?? cut)]
  }

  /** The time of a tool begins with its body, where the log says when that was. */
  #startTool(event: SessionEvent<'tool/call' | 'tool/start'>): readonly SpanDescription[] {
    const { callId } = event.data
    const call = event.type === 'tool/call' ? event : this.#calls.get(callId)?.event
    if (call !== undefined) this.#calls.set(callId, { event: call, startTime: event.time })
    return none
  }

  #endTool(event: SessionEvent<'tool/result'>): readonly SpanDescription[] {
    const { callId } = event.data.message.source
    const call = this.#calls.get(callId)
    if (call === undefined || !this.#calls.delete(callId) || this.#turn === undefined) return none
    const { name } = call.event.data
    const hasFailed = event.data.message.content[0].isError === true
    const attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.call.id': callId,
      'gen_ai.tool.type': 'function',
      ...this.#place(call.event.seq, event.seq),
      'dsh.step': event.data.step,
    }
    const span = {
      id: this.#idOf(call.event.seq),
      name: `execute_tool ${name}`,
      kind: 'internal',
      startTime: call.startTime,
      endTime: event.time,
      attributes,
    } as const
    return [
      finished(
        { ...span, ...this.#below() },
        hasFailed ? (event.data.error?.code ?? 'tool_error') : undefined,
      ),
    ]
  }

  #below(): { readonly rootId: string; readonly parent: ParentSpan } {
    const parent = this.#turn?.span
    if (parent === undefined) throw new RangeError('no turn is open')
    return { rootId: parent.id, parent }
  }

  #route(): Attributes {
    return this.#config === undefined ? {} : routeAttributes(this.#config)
  }

  #place(startSeq: number, endSeq: number): Attributes {
    const turn = this.#turn?.turn
    return {
      ...placeAttributes(this.#header, startSeq, endSeq),
      ...(turn === undefined ? {} : { 'dsh.turn': turn }),
    }
  }

  #idOf(seq: number): string {
    return `${this.#header.id}#${seq}`
  }
}

const none: readonly SpanDescription[] = []

function isReplacement({ surfaceOp }: SessionEvent): boolean {
  return surfaceOp !== undefined && surfaceOp !== 'append'
}

function errorOfTurn(reason: TurnEndReason): string | undefined {
  if (reason.kind === 'error') return reason.error.code
  return reason.kind === 'interrupted' || reason.kind === 'max-tokens' ? reason.kind : undefined
}
