import type { Session } from '../../core/session/index.ts'
import { messageOf, Service } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import { WebError } from './errors.ts'

export interface WebSearchRequest {
  readonly query: string
  /** Sources past these are left out. */
  readonly maxResults?: number
  /** For whom it is searched; a provider that asks a model logs there what it asks. */
  readonly session?: Session
}

export interface WebSource {
  readonly url: string
  readonly title?: string
  readonly snippet?: string
  /** As the provider says it. */
  readonly publishedAt?: string
}

export interface WebSearchResult {
  /** An answer in words, where the provider gives one. */
  readonly content?: string
  /** The best first. */
  readonly sources: readonly WebSource[]
  /** There were more sources. */
  readonly truncated: boolean
}

export interface WebFetchRequest {
  readonly url: string
}

export interface WebFetchResult {
  /** Where the answer came from at last. */
  readonly url: string
  readonly statusCode: number
  readonly body: { readonly kind: 'html' | 'text'; readonly content: string }
  /** The body was longer than what is read. */
  readonly truncated: boolean
  /** Another site to which the answer refers, and which nobody has asked yet. */
  readonly redirect?: string
}

interface WebProvider {
  readonly id: string
  /** Whether it could be asked now. Never touches the network. */
  available(): boolean
}

export interface WebSearchProvider extends WebProvider {
  /** What a person does so that it becomes available. */
  readonly hint?: string
  search(request: WebSearchRequest, signal: AbortSignal): Promise<WebSearchResult>
}

export interface WebFetchProvider extends WebProvider {
  /** Any status is a result. */
  fetch(request: WebFetchRequest, signal: AbortSignal): Promise<WebFetchResult>
}

export interface WebChoice {
  readonly searchProvider?: string | undefined
  readonly fetchProvider?: string | undefined
}

/**
 * The web, as `ctx.web`: pages are fetched and searches made by providers that plugins register.
 *
 * Which provider answers is decided at each call, by the config or by there being only one; the order of registration
 * never matters.
 */
export class Web extends Service {
  private readonly choice: WebChoice
  private readonly searching = new Map<string, WebSearchProvider>()
  private readonly fetching = new Map<string, WebFetchProvider>()

  constructor(ctx: Context, choice: WebChoice) {
    super(ctx, 'web')
    this.choice = choice
  }

  /** Until the caller ends. Throws WEB_DUPLICATE_PROVIDER. */
  registerSearchProvider(provider: WebSearchProvider): Disposer {
    return this.add(this.searching, provider, 'search')
  }

  /** Until the caller ends. Throws WEB_DUPLICATE_PROVIDER. */
  registerFetchProvider(provider: WebFetchProvider): Disposer {
    return this.add(this.fetching, provider, 'fetch')
  }

  /** Rejects with a WebError; with WEB_ABORTED, whose cause is the signal's reason, once `signal` is aborted. */
  async search(request: WebSearchRequest, signal: AbortSignal = never()): Promise<WebSearchResult> {
    const provider = choose(this.searching, this.choice.searchProvider, searchWords)
    const result = await settle(provider, () => provider.search(request, signal), signal)
    const { maxResults = Infinity } = request
    if (result.sources.length <= maxResults) return result
    return { ...result, sources: result.sources.slice(0, maxResults), truncated: true }
  }

  /** Rejects as `search` does. */
  async fetch(request: WebFetchRequest, signal: AbortSignal = never()): Promise<WebFetchResult> {
    const provider = choose(this.fetching, this.choice.fetchProvider, fetchWords)
    return await settle(provider, () => provider.fetch(request, signal), signal)
  }

  private add<P extends WebProvider>(providers: Map<string, P>, provider: P, kind: string): Disposer {
    const { id } = provider
    if (providers.has(id))
      throw new WebError('WEB_DUPLICATE_PROVIDER', `there is a ${kind} provider "${id}" already`)
    return this.ctx.effect(() => {
      providers.set(id, provider)
      return () => void providers.delete(id)
    }, `web ${kind} provider ${id}`)
  }
}

interface Words {
  readonly kind: string
  readonly setting: string
}

const searchWords: Words = { kind: 'search', setting: 'searchProvider' }
const fetchWords: Words = { kind: 'fetch', setting: 'fetchProvider' }

function choose<P extends WebProvider & { readonly hint?: string }>(
  providers: ReadonlyMap<string, P>,
  configured: string | undefined,
  { kind, setting }: Words,
): P {
  const names = [...providers.keys()].sort().join(', ')
  if (configured !== undefined) {
    const provider = providers.get(configured)
    if (provider === undefined) {
      const known = names === '' ? `there is no ${kind} provider` : `known: ${names}`
      throw new WebError(
        'WEB_PROVIDER_CONFIGURED_MISSING',
        `${setting} of web is "${configured}", which nobody provides; ${known}`,
      )
    }
    if (provider.available()) return provider
    const problem = `${setting} of web is "${configured}", which cannot be used now${hintsOf([provider])}`
    throw new WebError('WEB_PROVIDER_CONFIGURED_UNAVAILABLE', problem)
  }
  const [first, ...others] = [...providers.values()].filter(provider => provider.available())
  if (first === undefined) {
    const hints = hintsOf([...providers.values()]) || `; see docs/guide/web.md`
    throw new WebError('WEB_PROVIDER_UNAVAILABLE', `no ${kind} provider can be used${hints}`)
  }
  if (others.length === 0) return first
  const usable = [first, ...others].map(({ id }) => id).sort()
  throw new WebError(
    'WEB_PROVIDER_AMBIGUOUS',
    `${usable.join(', ')} could all ${kind}; set ${setting} in the config of web to one of them`,
  )
}

function hintsOf(providers: readonly { readonly id: string; readonly hint?: string }[]): string {
  const hints = providers.flatMap(({ id, hint }) => (hint === undefined ? [] : [`${hint} (${id})`]))
  return hints.length === 0 ? '' : `: ${hints.sort().join(', or ')}`
}

async function settle<T>({ id }: WebProvider, ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    if (!signal.aborted) return await ask()
  } catch (error) {
    if (!signal.aborted) throw error instanceof WebError ? error : foreign(id, error)
  }
  throw new WebError('WEB_ABORTED', 'aborted', { cause: signal.reason })
}

function foreign(id: string, cause: unknown): WebError {
  return new WebError('WEB_PROVIDER_ERROR', `provider ${id}: ${messageOf(cause)}`, { cause })
}

function never(): AbortSignal {
  return new AbortController().signal
}
