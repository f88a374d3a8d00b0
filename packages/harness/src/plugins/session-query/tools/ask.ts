import { messageOf } from '../../../kernel/index.ts'
import type { ToolRunContext } from '../../../core/tools/index.ts'
import { SessionQueryError } from '../errors.ts'
import type { SessionQueryErrorCode } from '../errors.ts'
import type { SessionQueries, SessionQuery } from '../service.ts'

/** What a model may know of a failure; of the others it learns that they happened. */
const told: ReadonlySet<SessionQueryErrorCode> = new Set([
  'SESSION_QUERY_EVENT_NOT_FOUND',
  'SESSION_QUERY_INVALID_FILTER',
  'SESSION_QUERY_INVALID_LIMIT',
  'SESSION_QUERY_INVALID_QUERY',
  'SESSION_QUERY_INVALID_WINDOW',
  'SESSION_QUERY_TOOL_UNAUTHORIZED',
  'SESSION_QUERY_TOOL_MISSING_AGENT',
  'SESSION_QUERY_TOOL_NO_CURRENT_STEP',
])

/** Asks in the name of the agent that calls. What aborts the call is thrown as it is. */
export async function ask<T>(
  query: SessionQuery,
  exec: ToolRunContext,
  question: (queries: SessionQueries, agent: NonNullable<ToolRunContext['agent']>) => Promise<T>,
): Promise<T> {
  const { agent, signal } = exec
  if (agent === undefined)
    throw new SessionQueryError('SESSION_QUERY_TOOL_MISSING_AGENT', 'no agent makes this call')
  try {
    return await question(query.asCaller(agent), agent)
  } catch (cause) {
    if (signal.aborted) throw signal.reason
    if (cause instanceof SessionQueryError && told.has(cause.code)) throw cause
    throw new SessionQueryError('SESSION_QUERY_TOOL_FAILED', 'the sessions could not be read', { cause })
  }
}

/** Epoch ms of a time that says its zone. Throws INVALID_FILTER. */
export function timeOf(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const time = /(Z|[+-]\d\d:\d\d)$/.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isSafeInteger(time)) return time
  throw new SessionQueryError(
    'SESSION_QUERY_INVALID_FILTER',
    `${name}: must be a time with its zone, such as 2026-11-30T14:05:00Z, not "${messageOf(value)}"`,
  )
}

/** A range where one of its ends is given. */
export function rangeOf<Kind extends string>(
  kind: Kind,
  from: number | undefined,
  to: number | undefined,
): readonly { readonly kind: Kind; readonly from?: number; readonly to?: number }[] {
  if (from === undefined && to === undefined) return []
  return [{ kind, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }]
}

export function listOf<Kind extends string, Value>(
  kind: Kind,
  values: readonly Value[] | undefined,
): readonly { readonly kind: Kind; readonly values: readonly Value[] }[] {
  return values === undefined ? [] : [{ kind, values }]
}
