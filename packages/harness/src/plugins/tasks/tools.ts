import type { ToolDefinition } from '../../core/tools/index.ts'
import type { TaskRegistry } from './service.ts'
import { taskKill } from './tools/kill.ts'
import { taskList } from './tools/list.ts'
import { taskOutput } from './tools/output.ts'

export interface TaskToolsConfig {
  /** Shown of what a task printed since the last look; the rest goes to the session's artifacts. */
  readonly maxOutputBytes: number
}

/** The tools of those who started tasks; offered to a model from its first task on. */
export function taskTools(tasks: TaskRegistry, config: TaskToolsConfig): readonly ToolDefinition[] {
  return [taskKill(tasks), taskList(tasks), taskOutput(tasks, config)]
}
