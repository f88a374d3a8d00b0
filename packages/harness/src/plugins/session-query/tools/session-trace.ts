import { SessionId } from '@dsh/protocol'
import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { SessionQuery } from '../service.ts'
import { ask } from './ask.ts'
import { renderLineage } from './render.ts'

export function sessionTraceTool(query: SessionQuery): ToolDefinition {
  return defineTool({
    name: 'session_trace',
    description: 'Tell which sessions a session was forked from, and which were forked from it.',
    parameters: { session_id: { type: 'string', description: 'this session if left out' } },
    isConcurrencySafe: () => true,
    execute: async (args, exec) =>
      await ask(query, exec, async (queries, agent) => {
        const id = args.session_id === undefined ? agent.id : SessionId(args.session_id)
        return renderLineage(id, await queries.traceSession(id, exec.signal))
      }),
  })
}
