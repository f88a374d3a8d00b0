import { SessionId } from '@dsh/protocol'
import type { SessionEventType } from '@dsh/protocol'
import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { SessionQueryConfig } from '../config.ts'
import type { SessionQuery } from '../service.ts'
import { ask, listOf, rangeOf, timeOf } from './ask.ts'
import { renderHits } from './render.ts'
import { resultsOf } from './session-search.ts'

const description =
  'Find text in the events of one session: this one up to the current step, or another of this folder. The query is looked for as it stands, in whatever case.'

const time = { type: 'string', description: 'with zone, 2026-11-30T14:05:00Z' } as const

export function sessionEventSearchTool(query: SessionQuery, config: SessionQueryConfig): ToolDefinition {
  return defineTool({
    name: 'session_event_search',
    description,
    parameters: {
      query: { type: 'string', required: true },
      session_id: { type: 'string', description: 'this session if left out' },
      seq_from: { type: 'integer' },
      seq_to: { type: 'integer' },
      time_from: time,
      time_to: time,
      event_types: { type: 'array', items: { type: 'string' } },
      surfaces: { type: 'array', items: { type: 'string', enum: ['current', 'shadowed', 'log-only'] } },
    },
    timeoutMs: config.searchTimeoutMs,
    async execute(args, exec) {
      const events = [
        ...rangeOf('seq', args.seq_from, args.seq_to),
        ...rangeOf('time', timeOf('time_from', args.time_from), timeOf('time_to', args.time_to)),
        ...listOf('type', args.event_types as readonly SessionEventType[] | undefined),
        ...listOf('surface', args.surfaces),
      ]
      const rest = { query: args.query, events, limit: resultsOf(config) }
      const page = await ask(query, exec, (queries, agent) => {
        const sessionId = args.session_id === undefined ? agent.id : SessionId(args.session_id)
        return queries.searchEvents({ ...rest, sessionId }, { signal: exec.signal })
      })
      return renderHits(args.query, page)
    },
  })
}
