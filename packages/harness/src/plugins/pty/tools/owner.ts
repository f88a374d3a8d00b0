import type { Agent } from '../../../core/agent/index.ts'
import type { ToolExecution } from '../../../core/tools/index.ts'
import { PtyError } from '../errors.ts'

/** The agent that makes the call; terminals belong to agents. */
export function ownerOf({ agent, name }: ToolExecution): Agent {
  if (agent === undefined)
    throw new PtyError('OWNER_NOT_LIVE', `${name} was called by no agent, and a terminal belongs to one`)
  return agent
}
