import type { ImageBlock, StreamChunk, ToolSchema } from '@dsh/protocol'
import { IdleWatchdog, LlmAdapter } from '../../core/llm/index.ts'
import type {
  GenerateOptions,
  LlmProviderInfo,
  LlmResolvedModelInfo,
  RetryPolicySettings,
} from '../../core/llm/index.ts'
import { adaptationFor } from './adapt.ts'
import type { Adaptation, SentFacts } from './adapt.ts'
import { readAnswer } from './answer.ts'
import { modelFacts, resolveProviders } from './config.ts'
import type { OpenAIChatConfig, ProviderEntry } from './config.ts'
import { encodeTools } from './encode-tools.ts'
import type { PictureState } from './encode-message.ts'
import { HistoryEncoder } from './encoder.ts'
import { wireFailure } from './failure.ts'
import { Host } from './host.ts'
import { toModelInfo } from './model-info.ts'
import type { ReportNotice, WireNotice } from './notice.ts'
import { toPicture } from './picture.ts'
import type { ReadEnv } from './proxy.ts'
import { quirksOf } from './quirks.ts'
import type { Quirks } from './quirks.ts'
import { bodyHead, bodyTail } from './request.ts'
import { HttpTransport } from './http-transport.ts'
import type { WireResponse } from './transport.ts'

/** One model on one host, as far as it is known by now. */
interface Route {
  readonly entry: ProviderEntry
  readonly model: string
  readonly quirks: Quirks
  readonly openTools: ReadonlySet<string>
  readonly encoder: HistoryEncoder
}

interface Reply {
  readonly response: WireResponse
  readonly route: Route
}

/**
 * Speaks Chat Completions to the hosts of the catalog and of the config.
 *
 * One `stream` is one attempt, except that a host which refuses one of our habits by an exact 400 is asked once more
 * without it, and that is remembered as long as the adapter lives.
 */
export class OpenAIChatAdapter extends LlmAdapter {
  override readonly coalesceMs: number
  readonly #config: OpenAIChatConfig
  readonly #env: ReadEnv
  readonly #report: ReportNotice
  readonly #entries: ReadonlyMap<string, ProviderEntry>
  readonly #routes = new Map<string, Route>()
  readonly #tools = new WeakMap<readonly ToolSchema[], Map<string, string | undefined>>()
  readonly #told = new Set<string>()
  readonly #http: HttpTransport

  constructor(config: OpenAIChatConfig, report: ReportNotice = () => {}) {
    super()
    this.coalesceMs = config.coalesceMs ?? 40
    this.#config = config
    this.#report = report
    const { env = {} } = config
    this.#env = typeof env === 'function' ? env : name => env[name]
    this.#http = new HttpTransport(this.#env)
    this.#entries = resolveProviders(config.providers, (provider, text) =>
      this.#notify({ code: 'BAD_CONFIG', provider, text }),
    )
  }

  get providers(): readonly string[] {
    return [...this.#entries.keys()]
  }

  /** The host behind a provider, for questions that are no requests to a model. */
  host(provider: string): Host {
    return new Host(this.#entry(provider), {
      env: this.#env,
      findKey: this.#config.findKey ?? this.#env,
      send: this.#config.transport ?? this.#http.send,
      userAgent: this.#config.userAgent ?? 'dsh',
    })
  }

  /** Ends kept connections. Requests that run go on. */
  close(): void {
    this.#http.close()
  }

  override providerInfo(provider: string): LlmProviderInfo {
    return { id: provider, name: this.#entry(provider).facts.name }
  }

  override providerRetryPolicy(provider: string): RetryPolicySettings | undefined {
    return this.#entry(provider).config.retry
  }

  override listModels(provider: string): readonly LlmResolvedModelInfo[] {
    const entry = this.#entry(provider)
    return Object.keys(entry.models).map(model => toModelInfo(provider, model, modelFacts(entry, model)))
  }

  override resolveModel(provider: string, model: string): Promise<LlmResolvedModelInfo> {
    return Promise.resolve(toModelInfo(provider, model, modelFacts(this.#entry(provider), model)))
  }

  override async *stream(options: GenerateOptions): AsyncGenerator<StreamChunk, void> {
    const { signal } = options
    signal?.throwIfAborted()
    const entry = this.#entry(options.provider)
    const host = this.host(entry.id)
    const watchdog = new IdleWatchdog({ limitMs: entry.idleTimeoutMs, signal })
    try {
      const { response, route } = await this.#ask(options, host, watchdog)
      yield* readAnswer({
        response,
        watchdog,
        quirks: route.quirks,
        subject: await host.subject(),
        messages: options.messages,
        lingerMs: this.#config.lingerMs ?? 2000,
        report: (code, text) => this.#notify({ code, provider: entry.id, model: options.model, text }),
      })
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    }
  }

  /** Asks until the host answers, flipping one refused habit after another, each once. */
  async #ask(options: GenerateOptions, host: Host, watchdog: IdleWatchdog): Promise<Reply> {
    const tried = new Set<string>()
    const learned: Adaptation[] = []
    let route = this.#route(options)
    let maxTokens = this.#outputLimit(options, route)
    for (;;) {
      const tools = this.#toolsOf(options, route)
      const body = await this.#body(options, { route, tools, maxTokens })
      const response = await host.post(body, watchdog)
      if (response.status >= 200 && response.status < 300) {
        this.#learn(route, learned)
        return { response, route }
      }
      const reply = await host.readError(response, watchdog)
      const sent = sentFacts(options, maxTokens)
      const found = adaptationFor({ status: reply.status, body: reply.body, quirks: route.quirks, sent })
      if (found === undefined || tried.has(found.key)) throw host.errorOf(reply)
      tried.add(found.key)
      maxTokens = found.maxTokens ?? maxTokens
      learned.push(found)
      route = adapted(
        route,
        found,
        this.#encoder(route.entry, route.model, { ...route.quirks, ...found.quirks }),
      )
    }
  }

  /** The most this model writes, where more was asked for. */
  #outputLimit({ maxTokens }: GenerateOptions, { entry, model }: Route): number | undefined {
    const { maxOutput } = modelFacts(entry, model)
    if (maxTokens === undefined || maxOutput === undefined || maxTokens <= maxOutput) return undefined
    const text = `the answer is limited to ${maxOutput} tokens, the most this model writes`
    this.#notify({ code: 'OPTION_LEFT_OUT', provider: entry.id, model, text })
    return maxOutput
  }

  async #body(
    options: GenerateOptions,
    { route, tools, maxTokens }: { route: Route; tools: string | undefined; maxTokens: number | undefined },
  ): Promise<readonly Uint8Array[]> {
    const { entry, model, quirks } = route
    const head = bodyHead(options, {
      quirks,
      extra: entry.config.body ?? {},
      tools,
      maxTokens,
      leftOut: (option, why) =>
        this.#notify({
          code: 'OPTION_LEFT_OUT',
          provider: entry.id,
          model,
          text: `${option} is left out: ${why}`,
        }),
    })
    const session = options.purpose === undefined ? options.sessionId : undefined
    const { messages, system } = options
    const history = await route.encoder.encode({ messages, system, session }, block =>
      this.#load(block, options),
    )
    return [Buffer.from(head), ...history, Buffer.from(bodyTail)]
  }

  async #load(block: ImageBlock, options: GenerateOptions): Promise<PictureState> {
    let bytes: Uint8Array | undefined
    try {
      bytes = await this.#config.loadImage?.(block, options)
    } catch {
      // A picture that cannot be read is a picture that is missing: the notice below says so.
      bytes = undefined
    }
    const picture = toPicture(block, bytes)
    if (picture.text !== undefined) {
      const { provider, model } = options
      this.#notify({
        code: 'BAD_IMAGE',
        provider,
        model,
        text: `picture ${block.attachment.sha256}: ${picture.text}`,
      })
    }
    return picture
  }

  #toolsOf(options: GenerateOptions, route: Route): string | undefined {
    const { tools } = options
    if (tools === undefined || tools.length === 0) return undefined
    const key = [...route.openTools].join(' ')
    const known = this.#tools.get(tools) ?? new Map<string, string | undefined>()
    this.#tools.set(tools, known)
    if (!known.has(key)) {
      const report = (code: WireNotice['code'], text: string): void =>
        this.#notify({ code, provider: route.entry.id, model: route.model, text })
      known.set(key, encodeTools(tools, { opened: route.openTools, report }))
    }
    return known.get(key)
  }

  #route({ provider, model, reasoningEffort }: GenerateOptions): Route {
    const key = `${provider} ${model}`
    const entry = this.#entry(provider)
    const facts = modelFacts(entry, model)
    if (reasoningEffort !== undefined && facts.efforts?.includes(reasoningEffort) === false) {
      const words = facts.efforts.join(', ')
      const text = `${provider}/${model} takes reasoning effort ${words}, not "${reasoningEffort}"`
      throw wireFailure('UNSUPPORTED_REASONING_EFFORT', text)
    }
    const known = this.#routes.get(key)
    if (known) return known
    const images = facts.images === undefined ? {} : { images: facts.images }
    const quirks = quirksOf(model, entry.quirks, images, facts.quirks)
    const route = {
      entry,
      model,
      quirks,
      openTools: new Set<string>(),
      encoder: this.#encoder(entry, model, quirks),
    }
    this.#routes.set(key, route)
    return route
  }

  #encoder(entry: ProviderEntry, model: string, quirks: Quirks): HistoryEncoder {
    return new HistoryEncoder({
      provider: entry.id,
      quirks,
      report: (code, text, message, count) =>
        this.#notify({
          code,
          provider: entry.id,
          model,
          text,
          ...(message === undefined ? {} : { messageId: message.id }),
          ...(count === undefined ? {} : { count }),
        }),
    })
  }

  #learn(route: Route, learned: readonly Adaptation[]): void {
    if (learned.length === 0) return
    const { entry, model } = route
    this.#routes.set(`${entry.id} ${model}`, route)
    for (const { text, maxTokens } of learned) {
      const isForOnce = maxTokens !== undefined
      this.#notify({
        code: isForOnce ? 'OPTION_LEFT_OUT' : 'QUIRK_LEARNED',
        provider: entry.id,
        model,
        text: `${entry.id} refused it: ${text}${isForOnce ? '' : ' from now on'}`,
      })
    }
  }

  #entry(provider: string): ProviderEntry {
    const entry = this.#entries.get(provider)
    if (entry) return entry
    throw wireFailure(
      'NO_ADAPTER',
      `provider "${provider}" is not set up; there are: ${this.providers.join(', ')}`,
    )
  }

  /** Each thing is told once: a mended message stays in every request. */
  #notify(notice: WireNotice): void {
    const key = `${notice.code} ${notice.provider} ${notice.model ?? ''} ${notice.text}`
    if (this.#told.has(key)) return
    if (this.#told.size < 10_000) this.#told.add(key)
    this.#report(notice)
  }
}

function adapted(route: Route, found: Adaptation, encoder: HistoryEncoder): Route {
  const { openTools } = route
  return {
    ...route,
    quirks: { ...route.quirks, ...found.quirks },
    openTools: found.openTool === undefined ? openTools : new Set([...openTools, found.openTool]),
    encoder: found.quirks === undefined ? route.encoder : encoder,
  }
}

function sentFacts(options: GenerateOptions, maxTokens: number | undefined): SentFacts {
  return {
    maxTokens: maxTokens ?? options.maxTokens,
    effort: options.reasoningEffort,
    temperature: options.temperature,
    tools: (options.tools ?? []).map(tool => tool.name),
  }
}
