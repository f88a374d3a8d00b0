import type { Agent } from '../../../core/agent/index.ts'
import type { ToolExecution } from '../../../core/tools/index.ts'
import { TaskError } from '../errors.ts'

/** The agent that makes the call; tasks belong to agents. */
export function ownerOf({ agent, name }: ToolExecution): Agent {
  if (agent === undefined)
    throw new TaskError('UNKNOWN_TASK', `${name} was called by no agent, so there are no tasks`)
  return agent
}
