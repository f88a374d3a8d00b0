import type { LlmFailure } from '@dsh/protocol'

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** A failed request will be sent again after `delayMs`. */
    'llm/retry': {
      /** The same for all retries of one request under one policy. */
      readonly retryId: string
      readonly turn: number
      readonly step: number
      readonly provider: string
      readonly mode: 'normal' | 'always'
      /** Tells policies apart: each has a budget of its own. */
      readonly policyKey: string
      /** From 1. */
      readonly retry: number
      /** Only in mode `normal`. */
      readonly maxRetries?: number
      readonly delayMs: number
      readonly failure: LlmFailure
    }
    /** The wait is over. Missing where the turn was cancelled, or the plugin unloaded, before that. */
    'llm/retry-started': {
      readonly retryId: string
      readonly turn: number
      readonly step: number
      readonly retry: number
    }
  }
}
