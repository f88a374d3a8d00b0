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
import { wireFailure } from './failure.ts'
import { Host } from './host.ts'
import { toModelInfo } from './model-info.ts'
import type { ReportNotice, WireNotice } from './notice.ts'
import { toPicture } from './picture.ts'
import type { ReadEnv } from '../http/index.ts'
import { bodyHead, bodyTail } from './request.ts'
import { HttpTransport } from './http-transport.ts'
import { Routes } from './routes.ts'
import type { Route } from './routes.ts'
import type { WireResponse } from './transport.ts'

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
  readonly #routes = new Routes(notice => this.#notify(notice))
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

  override async encode(options: GenerateOptions): Promise<Uint8Array> {
    const route = this.#routes.of(this.#entry(options.provider), options)
    const maxTokens = this.#outputLimit(options, route)
    const tools = this.#toolsOf(options, route)
    return Buffer.concat(await this.#body(options, { route, tools, maxTokens }))
  }

  /** Asks until the host answers, flipping one refused habit after another, each once. */
  async #ask(options: GenerateOptions, host: Host, watchdog: IdleWatchdog): Promise<Reply> {
    const tried = new Set<string>()
    const learned: Adaptation[] = []
    let route = this.#routes.of(this.#entry(options.provider), options)
    let maxTokens = this.#outputLimit(options, route)
    for (;;) {
      const tools = this.#toolsOf(options, route)
      const body = await this.#body(options, { route, tools, maxTokens })
      const response = await host.post(body, watchdog)
      if (response.status >= 200 && response.status < 300) {
        this.#routes.learn(route, learned)
        return { response, route }
      }
      const reply = await host.readError(response, watchdog)
      const sent = sentFacts(options, maxTokens)
      const found = adaptationFor({ status: reply.status, body: reply.body, quirks: route.quirks, sent })
      if (found === undefined || tried.has(found.key)) throw host.errorOf(reply)
      tried.add(found.key)
      maxTokens = found.maxTokens ?? maxTokens
      learned.push(found)
      route = this.#routes.adapted(route, found)
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

function sentFacts(options: GenerateOptions, maxTokens: number | undefined): SentFacts {
  return {
    maxTokens: maxTokens ?? options.maxTokens,
    effort: options.reasoningEffort,
    temperature: options.temperature,
    tools: (options.tools ?? []).map(tool => tool.name),
  }
}
