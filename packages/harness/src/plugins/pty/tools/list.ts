import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { PtySessions } from '../service.ts'
import { listText } from '../texts.ts'
import { ownerOf } from './owner.ts'

export function terminalList(pty: PtySessions): ToolDefinition {
  return defineTool({
    name: 'terminal_list',
    description: 'List open terminals.',
    deferred: true,
    parameters: {},
    isConcurrencySafe: () => true,
    execute: (_args, exec) => listText(pty.list(ownerOf(exec))),
  })
}
