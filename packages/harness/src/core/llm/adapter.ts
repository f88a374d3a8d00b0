import type {
  EpochHeader,
  LlmCallConfig,
  Message,
  RequestContext,
  SessionId,
  StreamChunk,
  ToolSchema,
} from '@dsh/protocol'
import type { RetryPolicy, RetryPolicySettings } from './retry.ts'

/** One whole model request. Loop-built ones are frozen: everything in them can be rebuilt from the log. */
export interface GenerateOptions extends LlmCallConfig {
  readonly messages: readonly Message[]
  readonly system?: string
  readonly tools?: readonly ToolSchema[]
  readonly sessionId?: SessionId
  /** What a side request is for; absent on the requests of a loop. */
  readonly purpose?: 'compaction' | 'session-title'
  readonly signal?: AbortSignal
}

export interface ReasoningEffort {
  readonly id: string
  readonly name: string
  readonly description?: string
}

/** What is known of one model on one route. */
export interface LlmResolvedModelInfo {
  readonly provider: string
  readonly id: string
  readonly name: string
  readonly description?: string
  /** Absent = unknown; without 'image' pictures are replaced by text on the wire. */
  readonly inputModalities?: readonly ('text' | 'image')[]
  readonly context?: { readonly contextWindow: number }
  readonly defaultMaxTokens?: number
  readonly reasoning?: { readonly efforts: readonly ReasoningEffort[]; readonly defaultEffort?: string }
}

export interface LlmProviderInfo {
  readonly id: string
  readonly name: string
}

/** A model bound to one generation of its adapter. */
export interface AdapterCall {
  readonly model: LlmResolvedModelInfo
  stream(options: GenerateOptions): AsyncIterable<StreamChunk>
}

/**
 * Speaks to the models of one or more providers.
 *
 * One `stream` call is one attempt at the provider. A failure may be thrown or yielded as a finish chunk of kind
 * error or aborted; `options.signal` must end it promptly.
 */
export abstract class LlmAdapter {
  /** Above 0: deltas of one block that come within so many milliseconds are joined before anyone sees them. */
  readonly coalesceMs?: number

  /** Ends with its first finish chunk; the runtime closes it there. */
  abstract stream(options: GenerateOptions): AsyncIterable<StreamChunk>

  providerInfo?(provider: string): LlmProviderInfo
  providerRetryPolicy?(provider: string): RetryPolicySettings | undefined
  /** For pickers only: a model that is missing here may still be asked for. */
  listModels?(provider: string): readonly LlmResolvedModelInfo[] | Promise<readonly LlmResolvedModelInfo[]>
  resolveModel(provider: string, model: string, _signal?: AbortSignal): Promise<LlmResolvedModelInfo> {
    return Promise.resolve({ provider, id: model, name: model })
  }
  prepareCall?(provider: string, model: string, signal?: AbortSignal): Promise<AdapterCall>
  /** The body that `stream` would send, without sending it; no key is needed for it, nor in it. */
  encode?(options: GenerateOptions): Promise<Uint8Array>
}

/** A checked call on the registration that `prepareCall` captured. */
export interface PreparedCall {
  /** `config` with the adapter's defaults filled in. */
  readonly config: LlmCallConfig
  readonly adapterDefaults: NonNullable<EpochHeader['adapterDefaults']>
  readonly context: RequestContext
  readonly inputModalities?: readonly ('text' | 'image')[]
  readonly retryPolicy: RetryPolicy
  /** Once only, and only with the same config; else INVALID_PREPARED_CALL. */
  stream(options: GenerateOptions): AsyncIterable<StreamChunk>
}
