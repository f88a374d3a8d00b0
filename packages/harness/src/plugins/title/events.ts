import type { Message, TokenUsage } from '@dsh/protocol'

/** Who made a title. */
export type TitleSource =
  | { readonly kind: 'fallback' }
  | {
      readonly kind: 'provider'
      readonly provider: string
      readonly model?: { readonly provider: string; readonly model: string }
    }
  | { readonly kind: 'user' }

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** The last one counts. `messageSeqs` are the messages it was made of, none for a title that a person gave. */
    'session/title': {
      readonly title: string
      readonly messageSeqs: readonly number[]
      readonly source: TitleSource
    }
    /** A model is about to be asked for a title; this is the whole request. */
    'session/title-llm-request': {
      readonly titleProvider: string
      readonly messageSeqs: readonly number[]
      readonly route: { readonly provider: string; readonly model: string }
      readonly system: string
      readonly messages: readonly Message[]
      readonly maxTokens: number
    }
    /** What came of the request at `requestSeq`, and what it took. */
    'session/title-llm-result': {
      readonly requestSeq: number
      /** Why there is no title; absent where there is one. */
      readonly problem?: string
      readonly usage?: TokenUsage
    }
  }
}
