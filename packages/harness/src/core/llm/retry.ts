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
