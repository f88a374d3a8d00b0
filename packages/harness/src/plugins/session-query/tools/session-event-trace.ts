import { SessionId } from '@dsh/protocol'
import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { SessionQuery } from '../service.ts'
import { ask } from './ask.ts'
import { renderTrace } from './render.ts'

export function sessionEventTraceTool(query: SessionQuery): ToolDefinition {
  return defineTool({
    name: 'session_event_trace',
    description: 'Tell what an event of a session replaces or stands on, and what replaces or cites it.',
    parameters: {
      session_id: { type: 'string', description: 'this session if left out' },
      seq: { type: 'integer', required: true },
    },
    isConcurrencySafe: () => true,
    execute: async (args, exec) =>
      await ask(query, exec, async (queries, agent) => {
        const sessionId = args.session_id === undefined ? agent.id : SessionId(args.session_id)
        return renderTrace(sessionId, await queries.traceEvent({ sessionId, seq: args.seq }, exec.signal))
      }),
  })
}
