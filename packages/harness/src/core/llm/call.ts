import type { EpochHeader, LlmCallConfig, StreamChunk } from '@dsh/protocol'
import { isPositive, isText } from '../../kernel/index.ts'
import type {
  AdapterCall,
  GenerateOptions,
  LlmAdapter,
  LlmProviderInfo,
  LlmResolvedModelInfo,
} from './adapter.ts'
import { LlmError, llmError, toLlmFailure } from './failure.ts'
import { checkedModelInfo } from './model-info.ts'
import type { RetryPolicy } from './retry.ts'

/** One provider as its adapter registered it. A call keeps the route it began with. */
export interface Route {
  readonly provider: string
  readonly adapter: LlmAdapter
  readonly info: LlmProviderInfo
  readonly retryPolicy: RetryPolicy
}

/** A config whose gaps the route's model filled in, and the way to send it. */
export interface ResolvedCall {
  readonly route: Route
  readonly model: LlmResolvedModelInfo
  readonly config: LlmCallConfig
  readonly adapterDefaults: NonNullable<EpochHeader['adapterDefaults']>
  start(options: GenerateOptions): AsyncIterable<StreamChunk>
}

/** Rejects with an LlmError whatever the adapter throws, and with the signal's reason once it is aborted. */
export async function resolveCall(
  route: Route,
  config: LlmCallConfig,
  signal: AbortSignal | undefined,
): Promise<ResolvedCall> {
  const given = canonicalConfig(config)
  const call = await openCall(route, given.model, signal)
  const model = checkedModelInfo(call.model, { provider: route.provider, model: given.model })
  const { reasoningEffort, maxTokens } = withDefaults(given, model)
  const adapterDefaults = Object.freeze({
    ...(reasoningEffort !== given.reasoningEffort ? { reasoningEffort: true as const } : {}),
    ...(maxTokens !== given.maxTokens ? { maxTokens: true as const } : {}),
  })
  const full = canonicalConfig({
    ...given,
    ...(reasoningEffort === undefined ? {} : { reasoningEffort }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  })
  return { route, model, config: full, adapterDefaults, start: options => call.stream(options) }
}

async function openCall(route: Route, model: string, signal: AbortSignal | undefined): Promise<AdapterCall> {
  const { adapter, provider } = route
  signal?.throwIfAborted()
  try {
    if (adapter.prepareCall !== undefined) return await adapter.prepareCall(provider, model, signal)
    const info = await resolveInfo(route, model, signal)
    return { model: info, stream: options => adapter.stream(options) }
  } catch (error) {
    throw new LlmError(toLlmFailure(error), { cause: error })
  } finally {
    // Over a failure too: once aborted, the reason is all that counts.
    signal?.throwIfAborted()
  }
}

/** What the adapter says of the model, unchecked; one that says nothing knows the name alone. */
async function resolveInfo(
  { adapter, provider }: Route,
  model: string,
  signal: AbortSignal | undefined,
): Promise<LlmResolvedModelInfo> {
  const { resolveModel } = adapter as Partial<LlmAdapter>
  return resolveModel === undefined
    ? { provider, id: model, name: model }
    : await resolveModel.call(adapter, provider, model, signal)
}

/** Throws UNSUPPORTED_REASONING_EFFORT for an effort that the model does not list; it is never put right. */
function withDefaults(
  config: LlmCallConfig,
  model: LlmResolvedModelInfo,
): Pick<LlmCallConfig, 'reasoningEffort' | 'maxTokens'> {
  const { reasoning, defaultMaxTokens } = model
  const reasoningEffort = config.reasoningEffort ?? reasoning?.defaultEffort
  const maxTokens = config.maxTokens ?? defaultMaxTokens
  const efforts = reasoning?.efforts.map(effort => effort.id) ?? []
  if (reasoningEffort !== undefined && !efforts.includes(reasoningEffort)) {
    const known = efforts.length === 0 ? 'it takes none' : `it takes ${efforts.join(', ')}`
    throw llmError(
      'UNSUPPORTED_REASONING_EFFORT',
      `${model.provider}/${model.id} has no reasoning effort "${reasoningEffort}"; ${known}`,
    )
  }
  return {
    ...(reasoningEffort === undefined ? {} : { reasoningEffort }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  }
}

const configFields: readonly [keyof LlmCallConfig, (value: unknown) => boolean][] = [
  ['provider', isText],
  ['model', isText],
  ['reasoningEffort', isText],
  ['temperature', Number.isFinite],
  ['maxTokens', isPositive],
  ['stop', value => Array.isArray(value) && value.every(isText)],
]

/** A frozen copy of the call's own fields. Throws INVALID_REQUEST naming the field that is wrong. */
function canonicalConfig(config: LlmCallConfig): LlmCallConfig {
  const copy: Record<string, unknown> = { provider: undefined, model: undefined }
  for (const [field, isRight] of configFields) {
    const value = config[field]
    if (value === undefined && !(field in copy)) continue
    if (!isRight(value)) {
      const shown = JSON.stringify(value) ?? typeof value
      throw llmError('INVALID_REQUEST', `${field} of a model call is ${shown}`)
    }
    copy[field] = Array.isArray(value) ? Object.freeze([...(value as readonly string[])]) : value
  }
  return Object.freeze(copy) as unknown as LlmCallConfig
}

/** Whether both ask the same of the same model; other fields of either do not count. */
export function callConfigEquals(a: LlmCallConfig, b: LlmCallConfig): boolean {
  return (
    a.provider === b.provider &&
    a.model === b.model &&
    a.reasoningEffort === b.reasoningEffort &&
    a.temperature === b.temperature &&
    a.maxTokens === b.maxTokens &&
    (a.stop === b.stop ||
      (a.stop?.length === b.stop?.length && (a.stop ?? []).every((text, at) => text === b.stop?.[at])))
  )
}
