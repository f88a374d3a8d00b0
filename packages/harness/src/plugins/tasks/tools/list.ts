import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { TaskRegistry } from '../service.ts'
import { listText } from '../texts.ts'
import { ownerOf } from './owner.ts'

export function taskList(tasks: TaskRegistry): ToolDefinition {
  return defineTool({
    name: 'task_list',
    description: 'List background tasks with their status.',
    deferred: true,
    parameters: {},
    isConcurrencySafe: () => true,
    execute: (_args, exec) => listText(tasks.list(ownerOf(exec)), Date.now()),
  })
}
