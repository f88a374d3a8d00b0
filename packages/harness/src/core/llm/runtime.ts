import type { JsonValue, LlmCallConfig, Message, SessionId, StreamChunk } from '@dsh/protocol'
import { isText, messageOf, Service } from '../../kernel/index.ts'
import type { Context, Disposer, Emit, Waterfall } from '../../kernel/index.ts'
import { scopeTarget } from '../scope/index.ts'
import type {
  GenerateOptions,
  LlmAdapter,
  LlmProviderInfo,
  LlmResolvedModelInfo,
  PreparedCall,
} from './adapter.ts'
import { AdapterStream, ChunkReader, ListenerStream } from './boundary.ts'
import type { Passage } from './boundary.ts'
import { callConfigEquals, resolveCall } from './call.ts'
import type { ResolvedCall, Route } from './call.ts'
import { coalesced } from './coalesce.ts'
import { ProviderDirectory } from './directory.ts'
import type { ConfigurableProvider, ModelDiscovery } from './directory.ts'
import { llmError } from './failure.ts'
import { checkedCatalog, checkedProviderInfo } from './model-info.ts'
import { ProjectionCheck } from './projection.ts'
import type { ProjectionProblem } from './projection.ts'
import { resolveRetryPolicy } from './retry.ts'
import type { RetryPolicy } from './retry.ts'
import { toWireRequest } from './wire-request.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    llm: LlmRuntime
  }

  interface Events {
    /** Around each model request. A loop's request may be observed or answered here, a hand-made one also routed. */
    'llm/stream': Waterfall<[options: GenerateOptions], AsyncIterable<StreamChunk>>
    /** A request has a history with faults that a strict provider would refuse; each is told once. */
    'llm/projection': Emit<
      [{ readonly sessionId?: SessionId; readonly problems: readonly ProjectionProblem[] }]
    >
    /** The set of routes has changed. */
    'llm/adapters-updated': Emit<[]>
  }
}

/** Takes the adapter's providers away again. */
export interface AdapterRegistration extends Disposer {
  /** Serves exactly `providers` from now on; nothing changes if one of them is taken. */
  replace(providers: readonly string[]): void
}

/** The models one harness can reach: who serves which provider, and the way every request goes. */
export class LlmRuntime extends Service {
  private readonly routes = new Map<string, Route>()
  private readonly directory = new ProviderDirectory()
  /** By the first message of the history. */
  private readonly histories = new WeakMap<
    Message,
    { readonly check: ProjectionCheck; readonly told: Set<string> }
  >()

  constructor(ctx: Context) {
    super(ctx, 'llm')
  }

  /** Serves all of `providers` with `adapter`, or none. Throws INVALID_ADAPTER or DUPLICATE_ADAPTER. */
  registerAdapter(providers: readonly string[], adapter: LlmAdapter): AdapterRegistration {
    const { ctx, routes } = this
    let own: readonly Route[] = []
    let disposed = false
    const serve = (next: readonly Route[]): void => {
      const taken = next.find(
        ({ provider }) => routes.has(provider) && !own.includes(routes.get(provider) as Route),
      )
      if (taken !== undefined) throw duplicate(taken.provider)
      for (const route of own) if (routes.get(route.provider) === route) routes.delete(route.provider)
      for (const route of next) routes.set(route.provider, route)
      own = next
      ctx.emit('llm/adapters-updated')
    }
    const first = toRoutes(providers, adapter)
    const dispose = ctx.effect(
      () => {
        serve(first)
        return () => {
          disposed = true
          serve([])
        }
      },
      `llm adapter ${first.map(route => route.provider).join(', ')}`,
    )
    return Object.assign(dispose, {
      replace(next: readonly string[]): void {
        if (disposed) throw llmError('REGISTRATION_DISPOSED', 'the adapter is no longer registered')
        serve(toRoutes(next, adapter))
      },
    })
  }

  listProviders(): readonly LlmProviderInfo[] {
    return Object.freeze([...this.routes.values()].map(route => route.info))
  }

  /** For pickers: a model that is missing here may still be asked for. */
  async listModels(provider: string): Promise<readonly LlmResolvedModelInfo[]> {
    const { adapter } = this.routeOf(provider)
    return checkedCatalog((await adapter.listModels?.(provider)) ?? [], provider)
  }

  async resolveModelInfo(
    provider: string,
    model: string,
    signal?: AbortSignal,
  ): Promise<LlmResolvedModelInfo> {
    return (await resolveCall(this.routeOf(provider), { provider, model }, signal)).model
  }

  /** Undefined where no adapter serves the provider. */
  providerRetryPolicy(provider: string): RetryPolicy | undefined {
    return this.routes.get(provider)?.retryPolicy
  }

  /** `config` with the defaults of its model filled in, and which fields those are. */
  async resolveCallConfig(
    config: LlmCallConfig,
    signal?: AbortSignal,
  ): Promise<Pick<ResolvedCall, 'config' | 'adapterDefaults'>> {
    const call = await resolveCall(this.routeOf(config.provider), config, signal)
    return { config: call.config, adapterDefaults: call.adapterDefaults }
  }

  /**
   * Checks a call against its model and holds on to the registration of this moment, whatever replaces it later.
   * Rejects with NO_ADAPTER, UNSUPPORTED_REASONING_EFFORT, what the adapter says, or the signal's reason.
   */
  async prepareCall(config: LlmCallConfig, signal?: AbortSignal): Promise<PreparedCall> {
    const call = await resolveCall(this.routeOf(config.provider), config, signal)
    const { provider, model } = call.config
    const contextWindow = call.model.context?.contextWindow
    const { inputModalities } = call.model
    let used = false
    return Object.freeze({
      config: call.config,
      adapterDefaults: call.adapterDefaults,
      context: Object.freeze({ provider, model, ...(contextWindow === undefined ? {} : { contextWindow }) }),
      ...(inputModalities === undefined ? {} : { inputModalities }),
      retryPolicy: call.route.retryPolicy,
      stream: (options: GenerateOptions) => {
        if (used) throw llmError('INVALID_PREPARED_CALL', 'a prepared call is sent once')
        assertPrepared(call, options)
        used = true
        return this.dispatch(options, call)
      },
    })
  }

  /** Runs `llm/stream` around the adapter. What the adapter throws is a finish chunk; what listeners throw is thrown. */
  stream(options: GenerateOptions): AsyncIterable<StreamChunk> {
    return this.dispatch(options, undefined)
  }

  /**
   * The body that the adapter would send for `options`, without sending it. Undefined where the adapter has no wire of its
   * own. Rejects with NO_ADAPTER and the like. No listener hears of it.
   */
  async encode(options: GenerateOptions): Promise<Uint8Array | undefined> {
    const call = await resolveCall(this.routeOf(options.provider), options, options.signal)
    return await call.route.adapter.encode?.(this.toWire({ ...options, ...call.config }, call))
  }

  registerConfigurableProviders(providers: readonly ConfigurableProvider[]): Disposer {
    return this.directory.add(this.ctx, providers)
  }

  listConfigurableProviders(): readonly ConfigurableProvider[] {
    return this.directory.list()
  }

  registerModelDiscovery(provider: string, discover: ModelDiscovery): Disposer {
    return this.directory.addDiscovery(this.ctx, provider, discover)
  }

  discoverModels(
    provider: string,
    settings: Readonly<Record<string, JsonValue>> = {},
    signal?: AbortSignal,
  ): Promise<readonly LlmResolvedModelInfo[]> {
    return this.directory.discover(provider, settings, signal)
  }

  private routeOf(provider: string): Route {
    const route = this.routes.get(provider)
    if (route !== undefined) return route
    const others = [...this.routes.keys()].join(', ')
    throw llmError(
      'NO_ADAPTER',
      `no adapter serves provider "${provider}"; there are: ${others === '' ? 'none' : others}`,
    )
  }

  private dispatch(options: GenerateOptions, prepared: ResolvedCall | undefined): AsyncIterable<StreamChunk> {
    this.checkHistory(options)
    const passage: Passage = { lastChecked: undefined }
    let direct: AsyncIterable<StreamChunk> | undefined
    const stream = this.ctx.waterfall(scopeTarget(this.ctx.scope), 'llm/stream', options, () => {
      direct = new AdapterStream({
        open: () => this.openAdapter(options, prepared),
        signal: options.signal,
        passage,
        report: error => this.ctx.fiber.report(error, 'llm/stream'),
      })
      return direct
    })
    return stream === direct ? stream : new ListenerStream(stream, passage)
  }

  /** Tells each fault of a history once. Adapters mend it on the wire; the log keeps it. */
  private checkHistory({ messages, sessionId }: GenerateOptions): void {
    const [first] = messages
    if (first === undefined) return
    const known = this.histories.get(first) ?? { check: new ProjectionCheck(), told: new Set<string>() }
    this.histories.set(first, known)
    const problems = known.check.check(messages).filter(({ code, index, callId }) => {
      const key = `${code} ${index} ${callId ?? ''}`
      return !known.told.has(key) && known.told.add(key)
    })
    if (problems.length === 0) return
    this.ctx.emit('llm/projection', { problems, ...(sessionId === undefined ? {} : { sessionId }) })
  }

  private async openAdapter(
    options: GenerateOptions,
    prepared: ResolvedCall | undefined,
  ): Promise<AsyncIterator<StreamChunk>> {
    if (prepared !== undefined) assertPrepared(prepared, options)
    const call = prepared ?? (await resolveCall(this.routeOf(options.provider), options, options.signal))
    const request = this.toWire(prepared === undefined ? { ...options, ...call.config } : options, call)
    const { coalesceMs = 0 } = call.route.adapter
    if (coalesceMs <= 0) return new ChunkReader(call.start(request))
    const stop = new AbortController()
    const signal = AbortSignal.any([stop.signal, ...(request.signal === undefined ? [] : [request.signal])])
    return coalesced(new ChunkReader(call.start({ ...request, signal })), coalesceMs, () => stop.abort())
  }

  private toWire(options: GenerateOptions, { route, model }: ResolvedCall): GenerateOptions {
    const { adapter, provider } = route
    return toWireRequest(options, {
      seesImages: model.inputModalities?.includes('image') ?? true,
      owns: other => other === provider || this.routes.get(other)?.adapter === adapter,
    })
  }
}

function assertPrepared(call: ResolvedCall, options: GenerateOptions): void {
  if (callConfigEquals(call.config, options)) return
  const { provider, model } = call.config
  throw llmError(
    'INVALID_PREPARED_CALL',
    `the request differs from the call prepared for ${provider}/${model}`,
  )
}

function toRoutes(providers: readonly string[], adapter: LlmAdapter): readonly Route[] {
  if (!Array.isArray(providers) || !providers.every(isText))
    throw llmError('INVALID_ADAPTER', 'an adapter needs a list of provider names')
  if (typeof (adapter as Partial<LlmAdapter> | undefined)?.stream !== 'function')
    throw llmError('INVALID_ADAPTER', `the adapter of ${providers.join(', ')} has no stream method`)
  const names = [...(providers as readonly string[])]
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw duplicate(twice)
  return names.map(provider => toRoute(provider, adapter))
}

function toRoute(provider: string, adapter: LlmAdapter): Route {
  const given = adapter.providerInfo?.(provider) ?? { id: provider, name: provider }
  const info = checkedProviderInfo(given, provider)
  try {
    const retryPolicy = resolveRetryPolicy(adapter.providerRetryPolicy?.(provider))
    return Object.freeze({ provider, adapter, info, retryPolicy })
  } catch (cause) {
    const problem = messageOf(cause)
    throw llmError('INVALID_ADAPTER', `retry policy of provider "${provider}": ${problem}`, { cause })
  }
}

function duplicate(provider: string): Error {
  return llmError('DUPLICATE_ADAPTER', `provider "${provider}" is already served by another adapter`)
}
