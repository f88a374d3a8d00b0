import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { SessionQueryConfig } from '../config.ts'
import type { SessionQuery } from '../service.ts'
import { sessionEventReadTool } from './session-event-read.ts'
import { sessionEventSearchTool } from './session-event-search.ts'
import { sessionEventTraceTool } from './session-event-trace.ts'
import { sessionSearchTool } from './session-search.ts'
import { sessionTraceTool } from './session-trace.ts'

/** What a model may ask of sessions, in the name of its agent. */
export function sessionQueryTools(
  query: SessionQuery,
  config: SessionQueryConfig,
): readonly ToolDefinition[] {
  return [
    sessionSearchTool(query, config),
    sessionEventSearchTool(query, config),
    sessionTraceTool(query),
    sessionEventTraceTool(query),
    sessionEventReadTool(query, config),
  ]
}
