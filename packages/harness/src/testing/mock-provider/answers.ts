import { MockReply } from './reply.ts'
import type { Rendered, ReplyContext, WireUsage } from './reply.ts'

export interface AnswerOptions {
  readonly reasoning?: string
  /** Words of the wire; default `stop`, or `tool_calls` where there are calls. */
  readonly finish?: string
  /** In place of what the provider's own ledger counts. */
  readonly usage?: Partial<WireUsage>
  readonly headers?: Readonly<Record<string, string>>
}

export interface MockCall {
  readonly name: string
  /** An object is written as JSON; a string goes over the wire as it is. */
  readonly arguments?: unknown
  /** Default: an id that no other call of this process has. */
  readonly id?: string
}

export interface RawEventsOptions {
  /** Default true: ends with `data: [DONE]`. */
  readonly done?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

const eventStream = { 'content-type': 'text/event-stream; charset=utf-8' }
const json = { 'content-type': 'application/json' }
let calls = 0

/** Builders of scripted answers. */
export const reply = {
  /** A streamed text, a delta for each word; one JSON answer where the client did not ask for a stream. */
  text(text: string, options: AnswerOptions = {}): MockReply {
    return answer({ text, calls: [] }, options)
  },

  /** One tool call, its arguments in two fragments. */
  toolCall(
    name: string,
    args: unknown = {},
    options: AnswerOptions & { id?: string; text?: string } = {},
  ): MockReply {
    const { id, text = '', ...rest } = options
    return answer({ text, calls: [{ name, arguments: args, ...(id === undefined ? {} : { id }) }] }, rest)
  },

  /** Several tool calls in one answer. */
  toolCalls(list: readonly MockCall[], options: AnswerOptions & { text?: string } = {}): MockReply {
    const { text = '', ...rest } = options
    return answer({ text, calls: list }, rest)
  },

  /** Server-sent events: an object becomes one `data:` line of JSON, a string is written as it is. */
  sse(events: readonly (object | string)[], options: RawEventsOptions = {}): MockReply {
    const pieces = events.map(event => (typeof event === 'string' ? bytesOf(event) : dataLine(event)))
    if (options.done ?? true) pieces.push(doneLine)
    const usage = events.map(usageOf).findLast(found => found !== undefined)
    const head = { status: 200, headers: { ...eventStream, ...options.headers } }
    return new MockReply(() => ({ head, pieces, ...(usage === undefined ? {} : { usage }) }))
  },

  /** Any status, headers and body; an object is sent as JSON. */
  status(
    status: number,
    options: { headers?: Readonly<Record<string, string>>; body?: string | Uint8Array | object } = {},
  ): MockReply {
    const { body = '', headers = {} } = options
    const isJson = typeof body === 'object' && !(body instanceof Uint8Array)
    const bytes = isJson ? bytesOf(JSON.stringify(body)) : bytesOf(body)
    const head = { status, headers: { ...(isJson ? json : {}), ...headers } }
    return new MockReply(() => ({ head, pieces: bytes.length === 0 ? [] : [bytes] }))
  },

  /** One JSON body with status 200, whatever the client asked for. */
  json(body: unknown): MockReply {
    const usage = usageOf(body)
    const pieces = [bytesOf(JSON.stringify(body))]
    return new MockReply(() => ({
      head: { status: 200, headers: json },
      pieces,
      ...(usage === undefined ? {} : { usage }),
    }))
  },

  /** The whole response, status line and headers included, as these bytes; then the connection closes. */
  raw(bytes: string | Uint8Array): MockReply {
    return new MockReply(() => ({ pieces: [bytesOf(bytes)] }), { end: 'fin' })
  },

  /** Not one byte, and then what `how` says. */
  nothing(how: 'fin' | 'rst' | 'hold'): MockReply {
    return new MockReply(() => ({ pieces: [] }), { end: how })
  },
}

const doneLine = bytesOf('data: [DONE]\n\n')

interface Answer {
  readonly text: string
  readonly calls: readonly MockCall[]
}

function answer({ text, calls: given }: Answer, options: AnswerOptions): MockReply {
  const made = given.map(call => ({
    id: call.id ?? `call_mock_${++calls}`,
    name: call.name,
    text: argumentText(call),
  }))
  return new MockReply(context => render({ text, calls: made }, options, context))
}

interface MadeCall {
  readonly id: string
  readonly name: string
  readonly text: string
}

function render(
  { text, calls: made }: { readonly text: string; readonly calls: readonly MadeCall[] },
  options: AnswerOptions,
  context: ReplyContext,
): Rendered {
  const { reasoning = '', finish = made.length > 0 ? 'tool_calls' : 'stop' } = options
  const thought = tokensIn(reasoning)
  const written = made.reduce((sum, call) => sum + tokensIn(call.name) + tokensIn(call.text), tokensIn(text))
  const usage = { ...context.charge(written + thought, thought), ...options.usage }
  const base = { id: 'chatcmpl-mock', created: 0, model: context.model }
  if (!context.stream) {
    const tool_calls = made.map(call => wireCall(call))
    const message = {
      role: 'assistant',
      content: text === '' ? null : text,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(made.length === 0 ? {} : { tool_calls }),
    }
    const body = {
      ...base,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: finish }],
      usage,
    }
    return {
      head: { status: 200, headers: { ...json, ...options.headers } },
      pieces: [bytesOf(JSON.stringify(body))],
      usage,
    }
  }
  const object = 'chat.completion.chunk'
  const chunk = (delta: object, finish_reason: string | null = null): Uint8Array =>
    dataLine({ ...base, object, choices: [{ index: 0, delta, finish_reason }] })
  const pieces = [
    chunk({ role: 'assistant', content: '' }),
    ...words(reasoning).map(word => chunk({ reasoning_content: word })),
    ...words(text).map(word => chunk({ content: word })),
    ...made.flatMap((call, index) =>
      callFragments(call, index).map(fragment => chunk({ tool_calls: [fragment] })),
    ),
    chunk({}, finish),
    dataLine({ ...base, object, choices: [], usage }),
    doneLine,
  ]
  return { head: { status: 200, headers: { ...eventStream, ...options.headers } }, pieces, usage }
}

function wireCall(call: MadeCall): object {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: call.text } }
}

function callFragments(call: MadeCall, index: number): object[] {
  const [first = '', second = ''] = halves(call.text)
  return [
    { index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } },
    { index, function: { arguments: first } },
    ...(second === '' ? [] : [{ index, function: { arguments: second } }]),
  ]
}

function argumentText(call: MockCall): string {
  const { arguments: args = {} } = call
  return typeof args === 'string' ? args : JSON.stringify(args)
}

function halves(text: string): string[] {
  const points = Array.from(text)
  const middle = Math.ceil(points.length / 2)
  return [points.slice(0, middle).join(''), points.slice(middle).join('')]
}

function words(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/u)
}

/** The provider's own idea of a token: four bytes of UTF-8. */
export function tokensIn(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4)
}

function usageOf(event: unknown): WireUsage | undefined {
  if (typeof event !== 'object' || event === null) return undefined
  return (event as { usage?: WireUsage | null }).usage ?? undefined
}

function dataLine(event: object): Uint8Array {
  return bytesOf(`data: ${JSON.stringify(event)}\n\n`)
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body
}
