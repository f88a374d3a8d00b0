import type { EpochHeader, LlmCallConfig, RequestContext, StreamChunk, ToolSchema } from '@dsh/protocol'
import { markLoopRequest } from '../llm/index.ts'
import type { GenerateOptions, PreparedCall, RetryPolicy } from '../llm/index.ts'
import { canonicalHeader, headerEquals } from '../session/index.ts'
import type { LoopHost, StepPlace } from './host.ts'

/** What a request says besides the messages. The same for all attempts of one step. */
export interface Envelope {
  readonly system: string
  readonly tools: readonly ToolSchema[]
}

/** One attempt, ready to be sent. */
export interface LoopCall {
  readonly config: LlmCallConfig
  /** Absent where no adapter serves the provider and a listener has to answer. */
  readonly retryPolicy: RetryPolicy | undefined
  stream(): AsyncIterable<StreamChunk>
}

/**
 * Makes the requests of one loop. Whatever goes into a request is in the log before it is sent: the request is the last
 * header plus the history at that moment, and nothing else.
 */
export class RequestBuilder {
  readonly #host: LoopHost
  #hasHeader = false
  #next: { readonly header: EpochHeader; readonly seed: LlmCallConfig } | undefined

  constructor(host: LoopHost) {
    this.#host = host
  }

  async build(envelope: Envelope, place: StepPlace): Promise<LoopCall> {
    const { agent, session, events } = this.#host
    const { turn, step, signal } = place
    const seed = this.#seed()
    const inner = (): Promise<LlmCallConfig> => Promise.resolve(seed)
    const wanted = await events.waterfall('agent/request', { turn, step, signal }, inner)
    signal.throwIfAborted()
    assertRoute(wanted)
    const prepared = await this.#prepare(wanted, signal)
    signal.throwIfAborted()
    const { system, tools } = envelope
    const { config = wanted, adapterDefaults = {}, retryPolicy } = prepared ?? {}
    const header = this.#logHeader(canonicalHeader({ config, adapterDefaults, system, tools }))
    this.#logContext(prepared?.context ?? { provider: config.provider, model: config.model })
    signal.throwIfAborted()
    const request = markLoopRequest<GenerateOptions>(
      Object.freeze({
        ...header.config,
        messages: session.messages,
        ...(header.system === undefined ? {} : { system: header.system }),
        ...(header.tools === undefined ? {} : { tools: header.tools }),
        sessionId: session.id,
        signal,
      }),
    )
    const stream = (): AsyncIterable<StreamChunk> =>
      prepared === undefined ? agent.ctx.llm.stream(request) : prepared.stream(request)
    return { config: header.config, retryPolicy, stream }
  }

  /** What is asked for unless an 'agent/request' listener says otherwise; may lack a route. */
  #seed(): LlmCallConfig {
    const { session } = this.#host
    const header = session.requestHeader()
    if (header === undefined || !this.#hasHeader) return this.#firstSeed(header)
    if (this.#next?.header !== header) this.#next = { header, seed: withoutDefaults(header) }
    return this.#next.seed
  }

  /** A session that goes on keeps its route, and on the same route the effort that was chosen. */
  #firstSeed(header: EpochHeader | undefined): LlmCallConfig {
    const {
      provider = header?.config.provider,
      model = header?.config.model,
      maxTokens,
    } = this.#host.agent.options
    const isSameRoute = header?.config.provider === provider && header?.config.model === model
    const kept = isSameRoute && header !== undefined ? withoutDefaults(header).reasoningEffort : undefined
    return Object.freeze({
      ...(provider === undefined ? {} : { provider }),
      ...(model === undefined ? {} : { model }),
      ...(kept === undefined ? {} : { reasoningEffort: kept }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
    }) as LlmCallConfig
  }

  /**
   * Undefined where no adapter serves the provider: a listener of 'llm/stream' may. Asked through the agent's own
   * context, so that listeners in its scope hear its requests.
   */
  async #prepare(config: LlmCallConfig, signal: AbortSignal): Promise<PreparedCall | undefined> {
    try {
      return await this.#host.agent.ctx.llm.prepareCall(config, signal)
    } catch (error) {
      if ((error as { readonly code?: unknown } | undefined)?.code === 'NO_ADAPTER') return undefined
      throw error
    }
  }

  /** Gives the header as it stands in the log. */
  #logHeader(header: EpochHeader): EpochHeader {
    const { session } = this.#host
    const last = session.requestHeader()
    const isFirst = !this.#hasHeader
    if (last !== undefined && !isFirst && headerEquals(last, header)) return last
    const reason = last === undefined ? 'initial' : isFirst ? 'resume' : 'change'
    const event = session.append('request/header', { header, reason })
    this.#hasHeader = true
    return event.data.header
  }

  #logContext(context: RequestContext): void {
    const { session } = this.#host
    const last = session.requestContext()
    const isSame =
      last?.provider === context.provider &&
      last.model === context.model &&
      last.contextWindow === context.contextWindow
    if (!isSame) session.append('request/context', context)
  }
}

/** What the adapter filled in was its own choice, and is its own again next time. */
function withoutDefaults({ config, adapterDefaults }: EpochHeader): LlmCallConfig {
  const { reasoningEffort, maxTokens, ...rest } = config
  return Object.freeze({
    ...rest,
    ...(reasoningEffort === undefined || adapterDefaults?.reasoningEffort ? {} : { reasoningEffort }),
    ...(maxTokens === undefined || adapterDefaults?.maxTokens ? {} : { maxTokens }),
  })
}

function assertRoute(config: LlmCallConfig): void {
  const { provider, model } = config as Partial<LlmCallConfig>
  if (typeof provider !== 'string' || provider === '')
    throw new Error('no provider was chosen for the request')
  if (typeof model !== 'string' || model === '')
    throw new Error(`no model of "${provider}" was chosen for the request`)
}
