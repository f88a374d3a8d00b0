import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { PtySessions } from '../service.ts'
import { openedText } from '../texts.ts'
import { ownerOf } from './owner.ts'

export function terminalOpen(pty: PtySessions): ToolDefinition {
  return defineTool({
    name: 'terminal_open',
    description:
      'Open a shell on a terminal that stays open, for programs that ask, REPLs and servers to watch. What it may do stays as it is now.',
    deferred: true,
    parameters: {
      type: { type: 'string', required: true, description: '"shell"' },
      name: { type: 'string' },
      cwd: { type: 'string', description: 'default: the working folder' },
    },
    effects: ({ cwd }) => [
      { kind: 'command', command: 'bash', ...(cwd !== undefined && cwd !== '' && { workdir: cwd }) },
    ],
    presentCall: ({ type, name }) => ({ card: 'terminal', title: name ?? type }),
    async execute({ type, name, cwd }, exec) {
      if (name?.trim() === '') throw new ToolArgsError(['name: is blank'])
      const request = {
        type,
        token: exec.token,
        ...(name !== undefined && { name }),
        ...(cwd !== undefined && { cwd }),
      }
      return openedText(await pty.spawn(ownerOf(exec), request, exec.signal))
    },
  })
}
