import { SessionId } from '@dsh/protocol'
import type { SessionEventType } from '@dsh/protocol'
import { defineTool } from '../../../core/tools/index.ts'
import type { PropertyMap, ToolDefinition } from '../../../core/tools/index.ts'
import type { SessionQueryConfig } from '../config.ts'
import type { SessionQuery } from '../service.ts'
import { ask, listOf, rangeOf, timeOf } from './ask.ts'
import { renderSessions } from './render.ts'

const description =
  'Find text in other sessions of this folder: what was said, called and answered. The query is looked for as it stands, in whatever case.'

const strings = { type: 'array', items: { type: 'string' } } as const
const time = { type: 'string', description: 'with zone, 2026-11-30T14:05:00Z' } as const
const surfaces = {
  type: 'array',
  items: { type: 'string', enum: ['current', 'shadowed', 'log-only'] },
} as const

const parameters = {
  query: { type: 'string', required: true },
  session_ids: strings,
  created_at_from: time,
  created_at_to: time,
  parent_session_ids: strings,
  include_root_sessions: {
    type: 'boolean',
    description: 'with parent_session_ids: those without a parent too',
  },
  availability: { type: 'array', items: { type: 'string', enum: ['live', 'persisted'] } },
  event_seq_from: { type: 'integer' },
  event_seq_to: { type: 'integer' },
  event_time_from: time,
  event_time_to: time,
  event_types: strings,
  event_surfaces: surfaces,
} as const satisfies PropertyMap

export function sessionSearchTool(query: SessionQuery, config: SessionQueryConfig): ToolDefinition {
  return defineTool({
    name: 'session_search',
    description,
    parameters,
    timeoutMs: config.searchTimeoutMs,
    async execute(args, exec) {
      const { parent_session_ids: parents, include_root_sessions: withRoots } = args
      const line = [...(parents ?? []).map(SessionId), ...(withRoots === true ? [null] : [])]
      const sessions = [
        ...listOf('id', args.session_ids?.map(SessionId)),
        ...rangeOf(
          'created-at',
          timeOf('created_at_from', args.created_at_from),
          timeOf('created_at_to', args.created_at_to),
        ),
        ...listOf('parent', parents === undefined && withRoots !== true ? undefined : line),
        ...listOf('availability', args.availability),
      ]
      const events = [
        ...rangeOf('seq', args.event_seq_from, args.event_seq_to),
        ...rangeOf(
          'time',
          timeOf('event_time_from', args.event_time_from),
          timeOf('event_time_to', args.event_time_to),
        ),
        ...listOf('type', args.event_types as readonly SessionEventType[] | undefined),
        ...listOf('surface', args.event_surfaces),
      ]
      const request = { query: args.query, sessions, events, limit: resultsOf(config) }
      const page = await ask(query, exec, queries => queries.searchSessions(request, { signal: exec.signal }))
      return renderSessions(args.query, page)
    },
  })
}

export function resultsOf({ maxSearchResults, maxLimit }: SessionQueryConfig): number {
  return Math.min(maxSearchResults, maxLimit)
}
