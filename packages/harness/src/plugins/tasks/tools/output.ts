import { keepArtifact } from '../../../core/session/index.ts'
import { defineTool, keepText, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { TaskRegistry } from '../service.ts'
import type { TaskToolsConfig } from '../tools.ts'
import { outputText } from '../texts.ts'
import { ownerOf } from './owner.ts'

const defaultWaitMs = 30_000
const maxWaitMs = 600_000

export function taskOutput(tasks: TaskRegistry, { maxOutputBytes }: TaskToolsConfig): ToolDefinition {
  return defineTool({
    name: 'task_output',
    description: 'Get what a background task printed since the last look, and its status.',
    deferred: true,
    parameters: {
      task_id: { type: 'string', required: true },
      wait: { type: 'boolean', description: 'until it ends' },
      timeout_ms: {
        type: 'number',
        description: `of the wait; default ${defaultWaitMs}, at most ${maxWaitMs}`,
      },
    },
    async execute({ task_id: id, wait = false, timeout_ms: timeoutMs = defaultWaitMs }, exec) {
      if (!(timeoutMs > 0)) throw new ToolArgsError([`timeout_ms: must be more than 0, not ${timeoutMs}`])
      const owner = ownerOf(exec)
      const { signal } = exec
      const leave = tasks.attend(owner, id)
      try {
        if (wait) await tasks.wait(owner, id, { ms: Math.min(timeoutMs, maxWaitMs), signal })
      } finally {
        leave()
      }
      const task = tasks.get(owner, id)
      const text = tasks.readNew(owner, id)
      const budget = { headBytes: Math.ceil(maxOutputBytes / 2), tailBytes: Math.floor(maxOutputBytes / 2) }
      const shown = keepText(text, budget)
      const artifact = shown.omittedBytes === 0 ? undefined : await keepArtifact(owner.session, text)
      return outputText(task, { ...shown, artifact })
    },
  })
}
