import './events.ts'
import { LlmError } from '../../core/llm/index.ts'
import type { RetryPolicy } from '../../core/llm/index.ts'
import type { EventTypeDefinition, FoldDefinition } from '../../core/session/index.ts'
import { isPositive, isText } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'

/** The last retry of a request under one policy. */
export interface RetryChain {
  readonly retryId: string
  readonly retry: number
}

const none: ReadonlyMap<string, RetryChain> = new Map()

/** The retries of the open step, by `chainKey`. Each step has a new budget. */
export const retryChains: FoldDefinition<ReadonlyMap<string, RetryChain>, 'llm/retry' | 'step/start'> = {
  name: 'llm retries',
  types: ['llm/retry', 'step/start'],
  init: () => none,
  apply(chains, event) {
    if (event.type === 'step/start') return none
    const { provider, policyKey, retryId, retry } = event.data
    return new Map(chains).set(chainKey(provider, policyKey), { retryId, retry })
  },
}

export function chainKey(provider: string, policyKey: string): string {
  return JSON.stringify([provider, policyKey])
}

/** The same text for the same policy, in this process and the next. */
export function policyKeyOf(policy: RetryPolicy): string {
  const { mode, initialDelayMs, maxDelayMs, jitterRatio } = policy
  const budget = mode === 'normal' ? [policy.maxRetries, policy.retryableCodes.toSorted()] : []
  return JSON.stringify([mode, initialDelayMs, maxDelayMs, jitterRatio, ...budget])
}

/** Notes about what happened, so a reader that does not know them loses nothing. */
export const retryEvents: readonly EventTypeDefinition[] = [
  { type: 'llm/retry', ignorable: true, validate: assertRetry },
  { type: 'llm/retry-started', ignorable: true, validate: assertStarted },
]

function assertRetry(data: unknown): void {
  assertStarted(data)
  const { provider, mode, policyKey, maxRetries, delayMs, failure } = data as Fields
  assertText(provider, 'provider')
  assertText(policyKey, 'policyKey')
  if (mode !== 'normal' && mode !== 'always') throw new TypeError(`mode ${JSON.stringify(mode)} is unknown`)
  if (mode === 'normal') assertFromOne(maxRetries, 'maxRetries')
  else if (maxRetries !== undefined) throw new TypeError('mode "always" has no maxRetries')
  if (typeof delayMs !== 'number' || !(delayMs > 0))
    throw new RangeError(`delayMs is ${JSON.stringify(delayMs)}`)
  if (typeof failure !== 'object' || failure === null) throw new TypeError('failure is missing')
  void new LlmError(failure as ConstructorParameters<typeof LlmError>[0])
}

function assertStarted(data: unknown): void {
  if (typeof data !== 'object' || data === null) throw new TypeError('data is no record')
  const { retryId, turn, step, retry } = data as Fields
  assertText(retryId, 'retryId')
  assertFromOne(turn, 'turn')
  assertFromOne(step, 'step')
  assertFromOne(retry, 'retry')
}

function assertText(value: unknown, field: string): void {
  if (!isText(value)) throw new TypeError(`${field} is ${JSON.stringify(value)}`)
}

function assertFromOne(value: unknown, field: string): void {
  if (!isPositive(value)) throw new RangeError(`${field} is ${JSON.stringify(value)}`)
}
