import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { TaskRegistry } from '../service.ts'
import { statusLine } from '../texts.ts'
import { ownerOf } from './owner.ts'

export function taskKill(tasks: TaskRegistry): ToolDefinition {
  return defineTool({
    name: 'task_kill',
    description: 'End a background task.',
    deferred: true,
    parameters: {
      task_id: { type: 'string', required: true },
      reason: { type: 'string' },
    },
    async execute({ task_id: id, reason }, exec) {
      const owner = ownerOf(exec)
      const leave = tasks.attend(owner, id)
      try {
        return statusLine(await tasks.kill(owner, id, reason))
      } finally {
        leave()
      }
    },
  })
}
