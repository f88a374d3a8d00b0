import { checkChatRequest, deepseekRules } from './mock-provider/check-request.ts'
import type { RequestRules } from './mock-provider/check-request.ts'
import { reply } from './mock-provider/answers.ts'
import { listenRaw } from './mock-provider/http.ts'
import type { ConnectionEnd, RawRequest } from './mock-provider/http.ts'
import { Ledger } from './mock-provider/ledger.ts'
import type { MockReply, ReplyContext } from './mock-provider/reply.ts'
import type { Socket } from 'node:net'

export { reply } from './mock-provider/answers.ts'
export type { AnswerOptions, MockCall, RawEventsOptions } from './mock-provider/answers.ts'
export { checkChatRequest, deepseekRules } from './mock-provider/check-request.ts'
export type { RequestRules } from './mock-provider/check-request.ts'
export type { Ledger, LedgerEntry } from './mock-provider/ledger.ts'
export type { MockReply, WireUsage } from './mock-provider/reply.ts'

/** The parsed body of a Chat Completions request, as far as tests look into it. */
export interface ChatBody {
  readonly model?: string
  readonly stream?: boolean
  readonly messages?: readonly ChatMessage[]
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters: unknown } }[]
  readonly [field: string]: unknown
}

export interface ChatMessage {
  readonly role: string
  readonly content?: unknown
  readonly reasoning_content?: string
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
  readonly tool_call_id?: string
  readonly [field: string]: unknown
}

export interface MockRequest extends RawRequest {
  /** Counts requests for an answer from 1. */
  readonly n: number
  /** Epoch milliseconds at which it was whole. */
  readonly at: number
  readonly text: string
  readonly body: ChatBody
  /** Why it was refused with 400, if it was. */
  readonly problems: readonly string[]
}

export type ScriptEntry = MockReply | ((request: MockRequest) => MockReply | Promise<MockReply>)

export interface MockProviderOptions {
  /** One entry for each request that is accepted, in order. */
  readonly script?: readonly ScriptEntry[]
  /** Asked first; gives the answers of side requests, which the script should not count. */
  readonly side?: (request: MockRequest) => MockReply | undefined
  /** Answers when the script has come to its end; without it such a request is refused. */
  readonly fallback?: ScriptEntry
  /** Accepts this key alone. Default: any non-empty one. `null` asks for none. */
  readonly key?: string | null
  /** What is refused with 400, over DeepSeek's rules; `off` refuses nothing. */
  readonly rules?: Partial<RequestRules> | 'off'
  readonly models?: readonly (string | object)[]
  readonly port?: number
}

export interface MockProvider {
  /** The base to which a client adds `/chat/completions`. */
  readonly url: string
  /** What makes the command line use this provider. */
  readonly env: { readonly DEEPSEEK_BASE_URL: string; readonly DEEPSEEK_API_KEY: string }
  /** Requests for an answer, those that were refused too. */
  readonly requests: readonly MockRequest[]
  /** All other requests: model lists, balances, what nobody knows. */
  readonly lookups: readonly RawRequest[]
  readonly ledger: Ledger
  push(...entries: ScriptEntry[]): void
  /** Resolves when request number `n` is there, at once where it already is. */
  received(n: number): Promise<MockRequest>
  close(): Promise<void>
}

/** A scripted provider that speaks Chat Completions over raw TCP on 127.0.0.1 and is as strict as the real one. */
export async function startMockProvider(options: MockProviderOptions = {}): Promise<MockProvider> {
  const state = new ProviderState(options)
  const server = await listenRaw((request, socket) => state.handle(request, socket), options.port)
  const url = `http://127.0.0.1:${server.port}`
  return {
    url,
    env: { DEEPSEEK_BASE_URL: url, DEEPSEEK_API_KEY: options.key ?? 'sk-mock' },
    requests: state.requests,
    lookups: state.lookups,
    ledger: state.ledger,
    push: (...entries) => void state.script.push(...entries),
    received: n => state.received(n),
    close: () => server.close(),
  }
}

class ProviderState {
  readonly requests: MockRequest[] = []
  readonly lookups: RawRequest[] = []
  readonly ledger = new Ledger()
  readonly script: ScriptEntry[]
  readonly #options: MockProviderOptions
  readonly #rules: RequestRules | undefined
  readonly #waiting: { readonly n: number; readonly resolve: (request: MockRequest) => void }[] = []

  constructor(options: MockProviderOptions) {
    this.#options = options
    this.script = [...(options.script ?? [])]
    this.#rules = options.rules === 'off' ? undefined : { ...deepseekRules, ...options.rules }
  }

  received(n: number): Promise<MockRequest> {
    const there = this.requests[n - 1]
    return there ? Promise.resolve(there) : new Promise(resolve => this.#waiting.push({ n, resolve }))
  }

  async handle(raw: RawRequest, socket: Socket): Promise<ConnectionEnd> {
    if (!raw.path.endsWith('/chat/completions')) {
      this.lookups.push(raw)
      return await this.#send(this.#refuseKey(raw) ?? this.#lookup(raw), raw, socket)
    }
    const request = this.#admit(raw)
    return await this.#send(await this.#answer(request), request, socket)
  }

  #admit(raw: RawRequest): MockRequest {
    const text = Buffer.from(raw.bytes).toString()
    const request: MockRequest = {
      ...raw,
      n: this.requests.length + 1,
      at: Date.now(),
      text,
      body: parseBody(text),
      problems: this.#rules ? checkChatRequest(text, this.#rules) : [],
    }
    this.requests.push(request)
    for (const { n, resolve } of this.#waiting) if (n === request.n) resolve(request)
    return request
  }

  async #answer(request: MockRequest): Promise<MockReply> {
    const refusal = this.#refuseKey(request)
    if (refusal) return refusal
    const [problem] = request.problems
    if (problem !== undefined) return refused(problem)
    const aside = this.#options.side?.(request)
    if (aside) return aside
    const entry = this.script.shift() ?? this.#options.fallback
    if (entry === undefined) return refused(`the script has no answer for request ${request.n}`)
    return typeof entry === 'function' ? await entry(request) : entry
  }

  #refuseKey(request: RawRequest): MockReply | undefined {
    const { key } = this.#options
    if (key === null) return undefined
    const given = /^Bearer (.+)$/.exec(request.headers['authorization'] ?? '')?.[1]
    if (given !== undefined && (key === undefined || given === key)) return undefined
    const message = `Authentication Fails, Your api key: ****${(given ?? '').slice(-4)} is invalid`
    return reply.status(401, { body: errorBody(message, 'authentication_error') })
  }

  #lookup({ path }: RawRequest): MockReply {
    if (path.endsWith('/models')) {
      const models = this.#options.models ?? ['deepseek-flash', 'deepseek-v4-pro']
      const data = models.map(model => (typeof model === 'string' ? { id: model, object: 'model' } : model))
      return reply.json({ object: 'list', data })
    }
    if (path.endsWith('/user/balance')) {
      const row = {
        currency: 'CNY',
        total_balance: '110.00',
        granted_balance: '10.00',
        topped_up_balance: '100.00',
      }
      return reply.json({ is_available: true, balance_infos: [row] })
    }
    return reply.status(404, { body: errorBody(`no such path: ${path}`, 'invalid_request_error') })
  }

  async #send(answer: MockReply, request: RawRequest | MockRequest, socket: Socket): Promise<ConnectionEnd> {
    const body = 'body' in request ? request.body : {}
    const model = typeof body.model === 'string' ? body.model : ''
    const context: ReplyContext = {
      model,
      stream: body.stream === true,
      charge: (output, reasoning) => this.ledger.charge(body, output, reasoning),
    }
    const rendered = answer.render(context)
    if ('n' in request && rendered.usage) this.ledger.record(request.n, model, rendered.usage)
    return await answer.send(rendered, socket)
  }
}

function refused(problem: string): MockReply {
  if (problem.startsWith('unpaired surrogate')) {
    return reply.status(400, {
      headers: { 'content-type': 'text/plain' },
      body: `Failed to parse the request body as JSON: ${problem}`,
    })
  }
  return reply.status(400, { body: errorBody(problem, 'invalid_request_error') })
}

function errorBody(message: string, type: string): object {
  return { error: { message, type, param: null, code: type } }
}

function parseBody(text: string): ChatBody {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? (body as ChatBody) : {}
  } catch {
    return {}
  }
}
