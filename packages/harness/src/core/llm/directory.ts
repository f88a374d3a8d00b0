import type { JsonValue } from '@dsh/protocol'
import { adopt, isText } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import type { LlmProviderInfo, LlmResolvedModelInfo } from './adapter.ts'
import { llmError } from './failure.ts'
import { checkedCatalog } from './model-info.ts'

/** A provider that could be used if it were set up. Plugins merge in what their settings need. */
export interface ConfigurableProvider extends LlmProviderInfo {
  /** Names of environment variables that hold its key; the first that is set counts. */
  readonly environment?: readonly string[]
  /** Where a key is to be had. */
  readonly keyUrl?: string
}

/** Asks an endpoint that no route serves yet for its models. `settings` are the provider's own, such as a base URL. */
export type ModelDiscovery = (
  settings: Readonly<Record<string, JsonValue>>,
  signal: AbortSignal | undefined,
) => Promise<readonly LlmResolvedModelInfo[]>

/** What could be set up: the providers, and ways to ask one for its models before it has a route. */
export class ProviderDirectory {
  readonly #providers = new Map<string, ConfigurableProvider>()
  readonly #discoveries = new Map<string, ModelDiscovery>()

  list(): readonly ConfigurableProvider[] {
    return Object.freeze([...this.#providers.values()])
  }

  /** All of `providers` or none. Throws INVALID_DIRECTORY or DUPLICATE_DIRECTORY. */
  add(ctx: Context, providers: readonly ConfigurableProvider[]): Disposer {
    if (!Array.isArray(providers))
      throw llmError('INVALID_DIRECTORY', 'configurable providers must be a list')
    const entries = (providers as readonly ConfigurableProvider[]).map(checkedEntry)
    const ids = new Set<string>()
    for (const { id } of entries) {
      if (this.#providers.has(id) || ids.has(id))
        throw llmError('DUPLICATE_DIRECTORY', `provider "${id}" is in the directory already`)
      ids.add(id)
    }
    return ctx.effect(
      () => {
        for (const entry of entries) this.#providers.set(entry.id, entry)
        return () => {
          for (const entry of entries) removeExactly(this.#providers, entry.id, entry)
        }
      },
      `configurable providers ${[...ids].join(', ')}`,
    )
  }

  addDiscovery(ctx: Context, provider: string, discover: ModelDiscovery): Disposer {
    if (!isText(provider) || typeof discover !== 'function')
      throw llmError(
        'INVALID_DISCOVERY',
        `model discovery of ${JSON.stringify(provider)} needs a provider and a function`,
      )
    if (this.#discoveries.has(provider))
      throw llmError('DUPLICATE_DISCOVERY', `provider "${provider}" has a model discovery already`)
    return ctx.effect(() => {
      this.#discoveries.set(provider, discover)
      return () => removeExactly(this.#discoveries, provider, discover)
    }, `model discovery ${provider}`)
  }

  /** Throws NO_DISCOVERY, what the discovery throws, or INVALID_CATALOG. */
  async discover(
    provider: string,
    settings: Readonly<Record<string, JsonValue>>,
    signal: AbortSignal | undefined,
  ): Promise<readonly LlmResolvedModelInfo[]> {
    const discover = this.#discoveries.get(provider)
    if (discover === undefined)
      throw llmError('NO_DISCOVERY', `provider "${provider}" cannot be asked for its models`)
    signal?.throwIfAborted()
    const models = await discover(settings, signal)
    signal?.throwIfAborted()
    return checkedCatalog(models, provider)
  }
}

function checkedEntry(entry: ConfigurableProvider): ConfigurableProvider {
  const { id, name } = entry ?? {}
  if (!isText(id) || !isText(name))
    throw llmError(
      'INVALID_DIRECTORY',
      `a configurable provider has id ${JSON.stringify(id)} and name ${JSON.stringify(name)}`,
    )
  try {
    return adopt(entry)
  } catch (cause) {
    throw llmError('INVALID_DIRECTORY', `configurable provider "${id}" is not JSON`, { cause })
  }
}

function removeExactly<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.get(key) === value) map.delete(key)
}
