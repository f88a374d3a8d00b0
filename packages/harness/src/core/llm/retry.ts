import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
/** How failed requests of a route are tried again. Resolved and checked when the adapter is registered. */
export type RetryPolicy = NormalRetryPolicy | AlwaysRetryPolicy

interface Backoff {
  readonly initialDelayMs: number
  readonly maxDelayMs: number
  /** 0.1 = ±10 %. */
  readonly jitterRatio: number
}

export interface NormalRetryPolicy extends Backoff {
  readonly mode: 'normal'
  readonly maxRetries: number
  readonly retryableCodes: readonly string[]
}

export interface AlwaysRetryPolicy extends Backoff {
  readonly mode: 'always'
}

/** What an adapter may say of its routes; what it leaves out is the default. `always` has no use for the last two. */
export interface RetryPolicySettings extends Partial<Backoff> {
  readonly mode?: RetryPolicy['mode']
  readonly maxRetries?: number
  readonly retryableCodes?: readonly string[]
}

export const defaultRetryPolicy: NormalRetryPolicy = Object.freeze({
  mode: 'normal',
  maxRetries: 5,
  retryableCodes: Object.freeze([
    'EMPTY_RESPONSE',
    'RATE_LIMIT',
    'SERVER',
    'STREAM_CLOSED',
    'TIMEOUT',
    'TRANSPORT',
  ]),
  initialDelayMs: 500,
  maxDelayMs: 10_000,
  jitterRatio: 0.1,
})

const knownKeys = new Set<string>(Object.keys(defaultRetryPolicy))

/** A frozen policy with the defaults filled in. Throws a TypeError or RangeError naming the setting that is wrong. */
export function resolveRetryPolicy(settings: RetryPolicySettings = {}): RetryPolicy {
  if (typeof settings !== 'object' || settings === null)
    throw new TypeError(`retry policy must be an object, not ${String(settings)}`)
  const given: RetryPolicySettings = { ...settings }
  for (const key of Object.keys(given)) {
    if (!knownKeys.has(key)) throw new TypeError(`retry policy has no setting "${key}"`)
  }
  const { mode = defaultRetryPolicy.mode } = given
  const backoff = resolveBackoff(given)
  if (mode === 'always') return Object.freeze({ mode, ...backoff })
  if (mode !== 'normal')
    throw new TypeError(`retry mode ${JSON.stringify(mode)} is neither "normal" nor "always"`)
  const { maxRetries = defaultRetryPolicy.maxRetries } = given
  if (!Number.isSafeInteger(maxRetries) || maxRetries < 0)
    throw new RangeError(`maxRetries ${String(maxRetries)} is not a whole number from 0`)
  const retryableCodes = resolveCodes(given.retryableCodes ?? defaultRetryPolicy.retryableCodes)
  return Object.freeze({ mode, maxRetries, retryableCodes, ...backoff })
}

function resolveBackoff(given: RetryPolicySettings): Backoff {
  const {
    initialDelayMs = defaultRetryPolicy.initialDelayMs,
    maxDelayMs = defaultRetryPolicy.maxDelayMs,
    jitterRatio = defaultRetryPolicy.jitterRatio,
  } = given
  assertDelay('initialDelayMs', initialDelayMs)
  assertDelay('maxDelayMs', maxDelayMs)
  if (initialDelayMs > maxDelayMs)
    throw new RangeError(`initialDelayMs ${initialDelayMs} is above maxDelayMs ${maxDelayMs}`)
  if (typeof jitterRatio !== 'number' || !(jitterRatio >= 0 && jitterRatio <= 1))
    throw new RangeError(`jitterRatio ${String(jitterRatio)} is not between 0 and 1`)
  return { initialDelayMs, maxDelayMs, jitterRatio }
}

function assertDelay(name: string, value: number): void {
  if (typeof value === 'number' && value > 0 && value <= MAX_TIMER_DELAY_MS) return
  throw new RangeError(`${name} ${String(value)} is not above 0 and at most ${MAX_TIMER_DELAY_MS}`)
}

function resolveCodes(codes: readonly string[]): readonly string[] {
  if (!Array.isArray(codes)) throw new TypeError('retryableCodes must be a list')
  const copy = [...(codes as readonly string[])]
  for (const code of copy) {
    if (typeof code !== 'string' || code === '')
      throw new TypeError(`retryableCodes has ${JSON.stringify(code)}, which is no code`)
  }
  if (new Set(copy).size !== copy.length) throw new TypeError('retryableCodes names a code twice')
  return Object.freeze(copy)
}

/** Milliseconds to wait before retry number `retry` (from 1), whole and at least 1. `random` is in [0, 1). */
export function retryDelayMs(policy: RetryPolicy, retry: number, random: number): number {
  const { initialDelayMs, maxDelayMs, jitterRatio } = policy
  const base = Math.min(initialDelayMs * 2 ** (retry - 1), maxDelayMs)
  const spread = base * (1 + jitterRatio * (2 * random - 1))
  return Math.max(1, Math.round(Math.min(spread, maxDelayMs)))
}
