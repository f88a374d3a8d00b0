import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { PtySessions } from '../service.ts'
import { closedText } from '../texts.ts'
import { ownerOf } from './owner.ts'

export function terminalClose(pty: PtySessions): ToolDefinition {
  return defineTool({
    name: 'terminal_close',
    description: 'Close a terminal and end all that runs in it.',
    deferred: true,
    parameters: { sessionId: { type: 'string', required: true } },
    async execute({ sessionId }, exec) {
      const owner = ownerOf(exec)
      const { status } = pty.get(owner, sessionId)
      await pty.kill(owner, sessionId, 'it was closed by terminal_close')
      return closedText(sessionId, status)
    },
  })
}
