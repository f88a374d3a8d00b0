import type { SessionEvent, SessionHeader, TokenUsage } from '@dsh/protocol'
import type { FoldDefinition } from '../../core/session/index.ts'
import type {} from '../title/events.ts'

/** What one model took within a quarter of an hour, which no change of prices falls into. */
export interface Spent {
  readonly provider: string
  readonly model: string
  /** Epoch milliseconds. */
  readonly from: number
  readonly usage: TokenUsage
}

export interface Spending {
  readonly spent: readonly Spent[]
  readonly tokens: number
  /** The models of answers that did not say what they took, once for each. */
  readonly untold: readonly Route[]
  readonly turns: number
  readonly steps: number
  /** Of turns that are over. */
  readonly activeMs: number
  readonly turnBegan: number | undefined
  /** Events before this seq are inherited. */
  readonly since: number
  readonly route: Route | undefined
  readonly titleRoute: Route | undefined
  /** The stream of the current attempt has told what it took. */
  readonly isTold: boolean
}

export interface Route {
  readonly provider: string
  readonly model: string
}

const spendingTypes = [
  'turn/start',
  'turn/end',
  'step/start',
  'request/header',
  'assistant/chunk',
  'assistant/message',
  'session/title-llm-request',
  'session/title-llm-result',
] as const
type SpendingEvent = SessionEvent<(typeof spendingTypes)[number]>

const quarterMs = 900_000

/** What a session took so far, its titles and failed attempts included; what a fork inherited is its parent's. */
export const spending: FoldDefinition<Spending, (typeof spendingTypes)[number]> = {
  name: 'spending',
  types: spendingTypes,
  init: (header: Pick<SessionHeader, 'seedLength'>) => ({
    spent: [],
    tokens: 0,
    untold: [],
    turns: 0,
    steps: 0,
    activeMs: 0,
    turnBegan: undefined,
    since: header.seedLength ?? 0,
    route: undefined,
    titleRoute: undefined,
    isTold: false,
  }),
  apply(state: Spending, event: SpendingEvent) {
    if (event.type === 'request/header') return { ...state, route: event.data.header.config }
    return event.seq < state.since ? state : applyOwn(state, event)
  },
}

function applyOwn(state: Spending, event: SpendingEvent): Spending {
  switch (event.type) {
    case 'turn/start':
      return { ...state, turns: state.turns + 1, turnBegan: event.time }
    case 'turn/end': {
      const { turnBegan = event.time } = state
      const activeMs = state.activeMs + Math.max(0, event.time - turnBegan)
      return { ...state, activeMs, turnBegan: undefined }
    }
    case 'step/start':
      return { ...state, steps: state.steps + 1, isTold: false }
    case 'assistant/chunk':
      return afterChunk(state, event)
    case 'assistant/message':
      return state.isTold ? { ...state, isTold: false } : afterMessage(state, event)
    case 'session/title-llm-request':
      return { ...state, titleRoute: event.data.route }
    case 'session/title-llm-result':
      return spend(state, state.titleRoute, event.time, event.data.usage)
    default:
      return state
  }
}

function afterMessage(state: Spending, { data, time }: SessionEvent<'assistant/message'>): Spending {
  const { usage, interrupted } = data
  if (usage !== undefined) return spend(state, state.route, time, usage)
  // One that was cut off never came to the end, where it is said.
  if (interrupted === true || state.route === undefined) return state
  return { ...state, untold: [...state.untold, state.route] }
}

function afterChunk(state: Spending, { data: { chunk }, time }: SessionEvent<'assistant/chunk'>): Spending {
  if (chunk.type === 'usage') return { ...spend(state, state.route, time, chunk.usage), isTold: true }
  // A failed attempt has no message that could tell it again.
  const hasFailed = chunk.type === 'finish' && /^(?:error|aborted)$/.test(chunk.reason.kind)
  return hasFailed && state.isTold ? { ...state, isTold: false } : state
}

function spend(
  state: Spending,
  route: Route | undefined,
  time: number,
  usage: TokenUsage | undefined,
): Spending {
  if (usage === undefined) return state
  const { provider = '', model = '' } = route ?? {}
  const from = time - (time % quarterMs)
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const tokens = state.tokens + inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens
  const at = state.spent.findLastIndex(
    each => each.provider === provider && each.model === model && each.from === from,
  )
  const known = state.spent[at]
  const spent =
    known === undefined
      ? [...state.spent, { provider, model, from, usage }]
      : state.spent.with(at, { ...known, usage: sum(known.usage, usage) })
  return { ...state, spent, tokens }
}

function sum(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: (a.cacheReadTokens ?? 0) + (b.cacheReadTokens ?? 0),
    cacheWriteTokens: (a.cacheWriteTokens ?? 0) + (b.cacheWriteTokens ?? 0),
  }
}
