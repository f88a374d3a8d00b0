import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { PtySessions } from '../service.ts'
import { ownerOf } from './owner.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGKILL', 'SIGTSTP', 'SIGHUP'] as const

export function terminalSignal(pty: PtySessions): ToolDefinition {
  return defineTool({
    name: 'terminal_signal',
    description: 'Send a signal to the program that has the terminal.',
    deferred: true,
    parameters: {
      sessionId: { type: 'string', required: true },
      signal: { type: 'string', enum: signals, required: true },
    },
    execute({ sessionId, signal }, exec) {
      return pty.signal(ownerOf(exec), sessionId, signal)
        ? `${signal} is sent`
        : 'nothing runs there any more'
    },
  })
}
