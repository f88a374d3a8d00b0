import type { ImageBlock, JsonValue } from '@dsh/protocol'
import { isFields } from '../../kernel/index.ts'
import type { GenerateOptions, RetryPolicySettings } from '../../core/llm/index.ts'
import { providerCatalog } from './catalog.ts'
import type { ModelFacts, ProviderFacts } from './catalog.ts'
import { checkedFields } from './check-config.ts'
import type { Complain } from './check-config.ts'
import type { ReadEnv } from '../http/index.ts'
import type { Quirks } from './quirks.ts'
import type { Transport } from './transport.ts'

export interface OpenAIChatConfig {
  /** The caller's environment; nothing else is read. */
  readonly env?: Readonly<Record<string, string | undefined>> | ReadEnv
  /** Finds a key by the name of its variable, at each request. Default: in `env`. */
  readonly findKey?: (name: string) => string | undefined | Promise<string | undefined>
  /** Over the catalog of known hosts, field by field; `false` takes a known one away. */
  readonly providers?: Readonly<Record<string, ProviderConfig | false>>
  readonly userAgent?: string
  /** Deltas of one block that come within so many milliseconds are joined. Default 40. */
  readonly coalesceMs?: number
  /** How long a host may take for its last words after it has named a reason for the end. Default 2000. */
  readonly lingerMs?: number
  /** The bytes of a picture, undefined where they are gone. Default: the artifacts of the request's session. */
  readonly loadImage?: (block: ImageBlock, options: GenerateOptions) => Promise<Uint8Array | undefined>
  /** Another way over the network. */
  readonly transport?: Transport
}

export interface ProviderConfig {
  readonly name?: string
  /** A known host whose facts stand under these. Default: the one of this id, or the one at this base URL. */
  readonly like?: string
  readonly baseURL?: string
  /** The key itself. */
  readonly apiKey?: string
  /** The variable that holds the key, or several of which the first set one wins. */
  readonly apiKeyEnv?: string | readonly string[]
  readonly keyOptional?: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** How long the host may be silent. Default 120 000, for hosts of one's own 600 000. */
  readonly idleTimeoutMs?: number
  readonly connectTimeoutMs?: number
  readonly quirks?: Partial<Quirks>
  /** Facts by model id, or the ids alone. */
  readonly models?: Readonly<Record<string, ModelFacts>> | readonly string[]
  /** Facts of models that are not listed. */
  readonly otherModels?: ModelFacts
  readonly defaultModel?: string
  /** Fields that go into each request body as they are. */
  readonly body?: Readonly<Record<string, JsonValue>>
  readonly retry?: RetryPolicySettings
}

/** One route, ready for use. */
export interface ProviderEntry {
  readonly id: string
  readonly facts: ProviderFacts
  readonly config: ProviderConfig
  readonly quirks: Partial<Quirks>
  readonly models: Readonly<Record<string, ModelFacts>>
  readonly idleTimeoutMs: number
  readonly connectTimeoutMs: number
}

/** All routes: the known hosts and those of the config. A bad field is told to `complain` and counts as absent. */
export function resolveProviders(
  providers: OpenAIChatConfig['providers'],
  complain: Complain,
): Map<string, ProviderEntry> {
  const given: unknown = providers ?? {}
  if (!isFields(given)) {
    complain('', 'providers is no map of providers')
    return resolveProviders({}, complain)
  }
  const entries = new Map<string, ProviderEntry>()
  for (const id of new Set([...Object.keys(providerCatalog), ...Object.keys(given)])) {
    const own = Object.hasOwn(given, id) ? given[id] : {}
    if (own === false) continue
    if (isFields(own)) entries.set(id, toEntry(id, checkedFields(id, own, complain), complain))
    else complain(id, `the settings of provider "${id}" are no map`)
  }
  return entries
}

function toEntry(id: string, config: ProviderConfig, complain: Complain): ProviderEntry {
  const known = knownHost(id, config, complain)
  const listed = Array.isArray(config.models)
    ? Object.fromEntries((config.models as readonly string[]).map(model => [model, {}]))
    : ((config.models ?? {}) as Readonly<Record<string, ModelFacts>>)
  const models: Record<string, ModelFacts> = { ...known?.models }
  for (const [model, facts] of Object.entries(listed)) models[model] = { ...models[model], ...facts }
  const facts: ProviderFacts = {
    ...(known ?? { name: id, baseURL: '' }),
    ...defined({ name: config.name, defaultModel: config.defaultModel, keyOptional: config.keyOptional }),
    otherModels: { ...known?.otherModels, ...config.otherModels },
    ...(config.apiKeyEnv === undefined ? {} : { apiKeyEnv: [config.apiKeyEnv].flat() }),
  }
  return {
    id,
    facts,
    config,
    models,
    quirks: { ...known?.quirks, ...config.quirks },
    idleTimeoutMs: config.idleTimeoutMs ?? facts.idleTimeoutMs ?? 120_000,
    connectTimeoutMs: config.connectTimeoutMs ?? 30_000,
  }
}

/** Facts of the catalog that hold for this provider; a host that is found by its address alone keeps its own name. */
function knownHost(id: string, config: ProviderConfig, complain: Complain): ProviderFacts | undefined {
  const name = config.like ?? id
  if (Object.hasOwn(providerCatalog, name)) return providerCatalog[name]
  if (config.like !== undefined) complain(id, `there is no known host "${config.like}"`)
  const host = URL.parse(config.baseURL ?? '')?.host
  const found = Object.values(providerCatalog).find(facts => URL.parse(facts.baseURL)?.host === host)
  return found && { ...found, name: id }
}

/** The facts of one model: its own, those of the model it is another name for, or those of all others. */
export function modelFacts(entry: ProviderEntry, model: string): ModelFacts {
  if (Object.hasOwn(entry.models, model)) return { ...entry.models[model] }
  const same = Object.values(entry.models).find(facts => facts.aliases?.includes(model))
  const { name: _name, aliases: _aliases, ...facts } = same ?? entry.facts.otherModels ?? {}
  return facts
}

function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(kept) as { [K in keyof T]: Exclude<T[K], undefined> }
}
