import type { TokenUsage } from '@dsh/protocol'

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** DeepSeek is about to be asked to search; this is the whole request, without its key. */
    'web/deepseek-search-llm-request': {
      readonly url: string
      readonly model: string
      readonly query: string
      readonly maxTokens: number
      readonly maxUses: number
    }
    /** What came of the request at `requestSeq`, and what it took. */
    'web/deepseek-search-llm-result': {
      readonly requestSeq: number
      /** Why there is no result; absent where there is one. */
      readonly problem?: string
      readonly usage?: TokenUsage
    }
  }
}
