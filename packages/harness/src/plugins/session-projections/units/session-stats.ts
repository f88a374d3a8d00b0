import type { CallId, SessionEvent, SessionHeader, StreamChunk, TokenUsage } from '@dsh/protocol'
import type { FoldDefinition } from '../../../core/session/index.ts'
import { isCount, isFields } from '../../../kernel/index.ts'
import type {} from '../../retry/events.ts'
import type {} from '../../title/events.ts'
import type { ProjectionUnit } from '../projection.ts'
import { addTool, countOf, dayOf, noStats, noTokens, withCounts } from './stats-sum.ts'
import type { RouteCounts, SessionStats } from './stats-sum.ts'

declare module '../projection.ts' {
  interface ProjectionStates {
    sessionStats: StatsState
  }
}

const statsTypes = [
  'request/header',
  'turn/start',
  'turn/end',
  'step/start',
  'step/end',
  'assistant/chunk',
  'assistant/message',
  'llm/retry-started',
  'tool/call',
  'tool/start',
  'tool/result',
  'session/title-llm-request',
  'session/title-llm-result',
] as const
type StatsEvent = SessionEvent<(typeof statsTypes)[number]>

/** One request that is under way. */
interface Attempt {
  readonly startedAt: number
  readonly firstTokenAt: number | null
}

interface RunningCall {
  readonly callId: CallId
  readonly name: string
  readonly at: number
}

/** The sums, and what of the open turn they still need. */
export interface StatsState {
  readonly stats: SessionStats
  /** Events before this seq are those of the session it was forked from. */
  readonly from: number
  readonly route: string | null
  readonly hasClosedStep: boolean
  readonly attempt: Attempt | null
  /** The open step has shown its first token, in whichever attempt. */
  readonly isFirstTold: boolean
  /** What the stream of the attempt said it took. */
  readonly usage: TokenUsage | null
  readonly running: readonly RunningCall[]
  /** The model that was last asked for a title. */
  readonly titleRoute: string | null
}

const fold: FoldDefinition<StatsState, (typeof statsTypes)[number]> = {
  name: 'session stats',
  types: statsTypes,
  init: ({ seedLength = 0 }: SessionHeader) => ({
    stats: noStats,
    from: seedLength,
    route: null,
    hasClosedStep: false,
    attempt: null,
    isFirstTold: false,
    usage: null,
    running: [],
    titleRoute: null,
  }),
  apply(state, event) {
    if (event.type === 'request/header') return withRoute(state, event)
    return event.seq < state.from ? state : applyOwn(state, event)
  },
}

/**
 * What a session took: steps, turns, time of models and tools, and tokens, by day (in UTC) and model.
 *
 * Time of a model is that of its requests, without the waits between attempts; a clock that runs backwards counts
 * nothing. The first token of a step is the one of its first attempt that had any. A fork starts at nothing.
 */
export const sessionStatsUnit: ProjectionUnit<StatsState, (typeof statsTypes)[number]> = {
  key: 'sessionStats',
  stateVersion: 1,
  fold,
  isState: isStatsState,
  view: ({ stats }) => stats as never,
}

function applyOwn(state: StatsState, event: Exclude<StatsEvent, SessionEvent<'request/header'>>): StatsState {
  switch (event.type) {
    case 'turn/start':
      return { ...state, hasClosedStep: false, running: [] }
    case 'turn/end':
      return endTurn(state, event.time)
    case 'step/start':
      return { ...state, attempt: begun(event.time), isFirstTold: false, usage: null }
    case 'step/end': {
      const stats = { ...state.stats, steps: state.stats.steps + 1 }
      const counted = withCounts(stats, dayOf(event.time), state.route, { steps: 1 })
      return { ...state, stats: counted, hasClosedStep: true, attempt: null }
    }
    case 'llm/retry-started':
      return { ...state, attempt: begun(event.time), usage: null }
    case 'assistant/chunk':
      return withChunk(state, event.data.chunk, event.time)
    case 'assistant/message':
      return event.surfaceOp === 'append' ? withMessage(state, event) : state
    case 'tool/call': {
      const { callId, name } = event.data
      return { ...state, running: [...state.running, { callId, name, at: event.time }] }
    }
    case 'tool/start':
      return startCall(state, event.data.callId, event.time)
    case 'tool/result':
      return event.surfaceOp === 'append' ? endCall(state, event) : state
    case 'session/title-llm-request': {
      const { provider, model } = event.data.route
      return { ...state, titleRoute: `${provider}/${model}` }
    }
    case 'session/title-llm-result':
      return withTitleRequest(state, event)
  }
}

function begun(time: number): Attempt {
  return { startedAt: time, firstTokenAt: null }
}

function withRoute(state: StatsState, event: SessionEvent<'request/header'>): StatsState {
  const { provider, model } = event.data.header.config
  const route = `${provider}/${model}`
  return route === state.route ? state : { ...state, route }
}

function endTurn(state: StatsState, time: number): StatsState {
  const { stats, route, hasClosedStep } = state
  const counted = hasClosedStep
    ? withCounts({ ...stats, turns: stats.turns + 1 }, dayOf(time), route, { turns: 1 })
    : stats
  return { ...state, stats: counted, hasClosedStep: false, attempt: null, running: [] }
}

function withChunk(state: StatsState, chunk: StreamChunk, time: number): StatsState {
  switch (chunk.type) {
    case 'usage':
      return { ...state, usage: chunk.usage, stats: addUsage(state, chunk.usage, time) }
    case 'finish': {
      const { kind } = chunk.reason
      return kind === 'error' || kind === 'aborted' ? endAttempt(state, time, { failures: 1 }) : state
    }
    default:
      return state.attempt?.firstTokenAt == null ? withFirstToken(state, time) : state
  }
}

function withFirstToken(state: StatsState, time: number): StatsState {
  const { attempt, stats, isFirstTold } = state
  // A request whose beginning the log does not show begins with its first token.
  if (attempt === null) return { ...state, attempt: { startedAt: time, firstTokenAt: time } }
  const told = { ...state, attempt: { ...attempt, firstTokenAt: time }, isFirstTold: true }
  if (isFirstTold) return told
  const ttftMs = stats.ttftMs + span(attempt.startedAt, time)
  return { ...told, stats: { ...stats, ttftMs, ttftSteps: stats.ttftSteps + 1 } }
}

/** A failed attempt, or a whole answer. */
function endAttempt(state: StatsState, time: number, counts: Partial<RouteCounts>): StatsState {
  const { attempt, stats, route } = state
  if (attempt === null) return { ...state, usage: null }
  const llmMs = span(attempt.startedAt, time)
  const summed = { ...stats, llmMs: stats.llmMs + llmMs }
  const counted = withCounts(summed, dayOf(time), route, { ...counts, requests: 1, llmMs })
  return { ...state, stats: counted, attempt: null, usage: null }
}

function withMessage(state: StatsState, event: SessionEvent<'assistant/message'>): StatsState {
  const { data, time } = event
  const { attempt, usage: told } = state
  const usage = told ?? data.usage
  const summed = told === null && data.usage !== undefined ? addUsage(state, data.usage, time) : state.stats
  const firstTokenAt = attempt?.firstTokenAt ?? null
  const isDecoded = firstTokenAt !== null && usage !== undefined && data.interrupted !== true
  const stats = isDecoded
    ? {
        ...summed,
        decodeMs: summed.decodeMs + span(firstTokenAt, time),
        decodeTokens: summed.decodeTokens + usage.outputTokens,
      }
    : summed
  return endAttempt({ ...state, stats }, time, {})
}

function addUsage({ stats, route }: StatsState, usage: TokenUsage, time: number): SessionStats {
  const counts = { ...noTokens, ...usage }
  return withCounts(countOf(stats, counts), dayOf(time), route, counts)
}

/** What a title took is paid for like all else; it is no step, and nobody waited for it. */
function withTitleRequest(state: StatsState, event: SessionEvent<'session/title-llm-result'>): StatsState {
  const { usage = noTokens, problem } = event.data
  const counts = { ...noTokens, ...usage, requests: 1, failures: problem === undefined ? 0 : 1 }
  const stats = countOf(state.stats, { ...noTokens, ...usage })
  return { ...state, stats: withCounts(stats, dayOf(event.time), state.titleRoute, counts) }
}

function startCall(state: StatsState, callId: CallId, time: number): StatsState {
  const index = state.running.findIndex(call => call.callId === callId)
  const call = state.running[index]
  return call === undefined ? state : { ...state, running: state.running.with(index, { ...call, at: time }) }
}

function endCall(state: StatsState, event: SessionEvent<'tool/result'>): StatsState {
  const { callId } = event.data.message.source
  const index = state.running.findIndex(call => call.callId === callId)
  const call = state.running[index]
  if (call === undefined) return state
  const ms = span(call.at, event.time)
  const [block] = event.data.message.content
  const stats = addTool(state.stats, call.name, { ms, failed: block.isError === true })
  const counted = withCounts(stats, dayOf(event.time), state.route, { toolMs: ms, toolCalls: 1 })
  return { ...state, stats: counted, running: state.running.toSpliced(index, 1) }
}

function span(from: number, to: number): number {
  return Math.max(0, to - from)
}

function isStatsState(value: unknown): value is StatsState {
  if (!isFields(value)) return false
  const { stats, from, route, titleRoute, hasClosedStep, isFirstTold, attempt, usage, running } = value
  return (
    isFields(stats) &&
    Object.keys(noStats).every(key =>
      key === 'tools' || key === 'days' ? isFields(stats[key]) : isCount(stats[key]),
    ) &&
    isCount(from) &&
    (route === null || typeof route === 'string') &&
    (titleRoute === null || typeof titleRoute === 'string') &&
    typeof hasClosedStep === 'boolean' &&
    typeof isFirstTold === 'boolean' &&
    (attempt === null || isFields(attempt)) &&
    (usage === null || isFields(usage)) &&
    Array.isArray(running)
  )
}
