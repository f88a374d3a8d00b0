import type { TokenUsage } from '@dsh/protocol'

/** Tokens, each kind once. */
export type TokenCounts = { readonly [Key in keyof Required<TokenUsage>]: number }

/** What one model did on one day. */
export interface RouteCounts extends TokenCounts {
  readonly turns: number
  readonly steps: number
  /** Failed ones included. */
  readonly requests: number
  readonly failures: number
  readonly llmMs: number
  readonly toolMs: number
  readonly toolCalls: number
}

export interface ToolCounts {
  readonly calls: number
  readonly errors: number
  readonly ms: number
}

export interface SessionStats extends TokenCounts {
  readonly steps: number
  /** Those that had a step. */
  readonly turns: number
  readonly llmMs: number
  /** From request to first token, over `ttftSteps` steps. */
  readonly ttftMs: number
  readonly ttftSteps: number
  /** From first token to the end, and the tokens of that time. */
  readonly decodeMs: number
  readonly decodeTokens: number
  readonly toolMs: number
  readonly tools: Readonly<Record<string, ToolCounts>>
  /** By day (`2026-11-30`, UTC) and model (`provider/model`). */
  readonly days: Readonly<Record<string, Readonly<Record<string, RouteCounts>>>>
}

export const noTokens: TokenCounts = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
}

export const noCounts: RouteCounts = {
  turns: 0,
  steps: 0,
  requests: 0,
  failures: 0,
  llmMs: 0,
  toolMs: 0,
  toolCalls: 0,
  ...noTokens,
}

export const noStats: SessionStats = {
  steps: 0,
  turns: 0,
  llmMs: 0,
  ttftMs: 0,
  ttftSteps: 0,
  decodeMs: 0,
  decodeTokens: 0,
  toolMs: 0,
  ...noTokens,
  tools: {},
  days: {},
}

/** Models make tool names up; the state must not grow with them. */
const namedTools = 100
const otherTools = '(others)'
const noRoute = '(unknown)'
const lastDate = 8.64e15
const dayMs = 86_400_000
/** Events come in order, and to write a date takes longer than all else that is counted of one. */
let lastDay = { number: Number.NaN, text: '' }

/** `2026-11-30` in UTC: the same on every machine. */
export function dayOf(time: number): string {
  const number = Math.floor(Math.min(Math.max(time, -lastDate), lastDate) / dayMs)
  if (number !== lastDay.number)
    lastDay = { number, text: new Date(number * dayMs).toISOString().split('T')[0] ?? '' }
  return lastDay.text
}

/** `base` with the numbers of `more` added, key by key. */
export function countOf<Counts extends object>(base: Counts, more: Partial<Counts>): Counts {
  const sum = { ...base } as Record<string, unknown>
  for (const [key, count] of Object.entries(more))
    sum[key] = ((sum[key] as number | undefined) ?? 0) + (count as number)
  return sum as Counts
}

export function withCounts(
  stats: SessionStats,
  day: string,
  route: string | null,
  counts: Partial<RouteCounts>,
): SessionStats {
  const routes = own(stats.days, day) ?? {}
  const key = route ?? noRoute
  const sum = countOf(own(routes, key) ?? noCounts, counts)
  return { ...stats, days: { ...stats.days, [day]: { ...routes, [key]: sum } } }
}

export function addTool(
  stats: SessionStats,
  name: string,
  { ms, failed }: { readonly ms: number; readonly failed: boolean },
): SessionStats {
  const { tools } = stats
  const isKnown = Object.hasOwn(tools, name) || Object.keys(tools).length < namedTools
  const key = isKnown ? name : otherTools
  const { calls, errors, ms: before } = own(tools, key) ?? { calls: 0, errors: 0, ms: 0 }
  const tool = { calls: calls + 1, errors: errors + (failed ? 1 : 0), ms: before + ms }
  return { ...stats, toolMs: stats.toolMs + ms, tools: { ...tools, [key]: tool } }
}

/** Names come from models: one of them may be `__proto__`. */
function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
