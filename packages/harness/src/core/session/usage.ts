import type { SessionEvent, SessionHeader, StreamChunk, TokenUsage } from '@dsh/protocol'
import type { FoldDefinition } from './fold.ts'

export interface UsageTally {
  /** Of all requests of the session, failed attempts included; what a fork inherited is its parent's. */
  readonly total: TokenUsage
  /** Of the open step, or of the last one. */
  readonly step: TokenUsage
  /** Events before this seq are inherited. */
  readonly from: number
  /** The stream of the current attempt has told what it took. */
  readonly isTold: boolean
}

const usageTypes = ['step/start', 'assistant/chunk', 'assistant/message'] as const
const nothing: TokenUsage = Object.freeze({ inputTokens: 0, outputTokens: 0 })

/** What the models of a session took, told once for each request: by its stream, else by its message. */
export const tokenUsage: FoldDefinition<UsageTally, (typeof usageTypes)[number]> = {
  name: 'token usage',
  types: usageTypes,
  init: (header: Pick<SessionHeader, 'seedLength'>) => ({
    total: nothing,
    step: nothing,
    from: header.seedLength ?? 0,
    isTold: false,
  }),
  apply(state: UsageTally, event: SessionEvent<(typeof usageTypes)[number]>) {
    if (event.seq < state.from) return state
    switch (event.type) {
      case 'step/start':
        return { ...state, step: nothing, isTold: false }
      case 'assistant/chunk':
        return withChunk(state, event.data.chunk)
      case 'assistant/message': {
        const { usage } = event.data
        if (usage === undefined || state.isTold) return state.isTold ? { ...state, isTold: false } : state
        return add(state, usage)
      }
    }
  },
}

function withChunk(state: UsageTally, chunk: StreamChunk): UsageTally {
  if (chunk.type === 'usage') return { ...add(state, chunk.usage), isTold: true }
  // A failed attempt has no message that could tell it again.
  const hasFailed = chunk.type === 'finish' && /^(error|aborted)$/.test(chunk.reason.kind)
  return hasFailed && state.isTold ? { ...state, isTold: false } : state
}

function add(state: UsageTally, usage: TokenUsage): UsageTally {
  return { ...state, total: sum(state.total, usage), step: sum(state.step, usage) }
}

function sum(a: TokenUsage, b: TokenUsage): TokenUsage {
  const total: { -readonly [Key in keyof TokenUsage]: TokenUsage[Key] } = { ...a }
  for (const [key, count] of Object.entries(b) as [keyof TokenUsage, number][])
    total[key] = (total[key] ?? 0) + count
  return Object.freeze(total)
}
