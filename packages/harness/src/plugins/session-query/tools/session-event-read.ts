import { SessionId } from '@dsh/protocol'
import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { SessionQueryConfig } from '../config.ts'
import type { SessionQuery } from '../service.ts'
import { ask } from './ask.ts'
import { renderWindow } from './render.ts'

export function sessionEventReadTool(
  query: SessionQuery,
  { readWindowMax }: SessionQueryConfig,
): ToolDefinition {
  const count = { type: 'integer', description: `neighbours to summarise, at most ${readWindowMax}` } as const
  return defineTool({
    name: 'session_event_read',
    description: 'Read one event of a session whole, as JSON, with a line for each of its neighbours.',
    parameters: {
      session_id: { type: 'string', description: 'this session if left out' },
      seq: { type: 'integer', required: true },
      before: count,
      after: count,
    },
    isConcurrencySafe: () => true,
    execute: async ({ session_id, seq, before = 0, after = 0 }, exec) =>
      await ask(query, exec, async (queries, agent) => {
        const sessionId = session_id === undefined ? agent.id : SessionId(session_id)
        const window = await queries.readEvent({ sessionId, seq, before, after }, exec.signal)
        return renderWindow(sessionId, window)
      }),
  })
}
