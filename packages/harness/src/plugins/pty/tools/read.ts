import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { PtySessions } from '../service.ts'
import { pageText } from '../texts.ts'
import { ownerOf } from './owner.ts'

export function terminalRead(
  pty: PtySessions,
  { maxOutputBytes }: { readonly maxOutputBytes: number },
): ToolDefinition {
  return defineTool({
    name: 'terminal_read',
    description: 'Get the last lines of a terminal, without typing.',
    deferred: true,
    parameters: {
      sessionId: { type: 'string', required: true },
      offset: { type: 'integer', description: 'lines left out at the end; default 0' },
      count: { type: 'integer', description: 'default 500' },
    },
    isConcurrencySafe: () => true,
    execute({ sessionId, offset = 0, count = 500 }, exec) {
      if (offset < 0 || count < 1) throw new ToolArgsError(['offset and count: not less than 0 and 1'])
      const owner = ownerOf(exec)
      const page = pty.read(owner, sessionId, { offset, count })
      return pageText(page, pty.get(owner, sessionId).status, maxOutputBytes)
    },
  })
}
