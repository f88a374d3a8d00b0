import { defineTool, ToolArgsError, ToolError } from '../../core/tools/index.ts'
import type { ToolDefinition } from '../../core/tools/index.ts'
import { presentBash } from '../bash/index.ts'
import type { AgentShells } from './shells.ts'
import { description } from './texts.ts'

const output = {
  output: { type: 'string', required: true },
  notes: { type: 'array', items: { type: 'string' }, required: true },
  exitCode: { oneOf: [{ type: 'integer' }, { type: 'null' }], required: true },
  timedOut: { type: 'boolean', required: true },
  durationMs: { type: 'integer', required: true },
} as const

export function persistentBashTool(shells: AgentShells): ToolDefinition {
  return defineTool({
    name: 'bash',
    description,
    parameters: { command: { type: 'string', required: true } },
    output: {
      schema: output,
      render: (_args, { output: printed, notes }) => {
        const text = printed.replace(/\n$/, '')
        return [...(text === '' ? [] : [text]), ...notes].join('\n') || '(no output)'
      },
      presentationMeta: (_args, { exitCode, timedOut, durationMs }) => ({
        exitCode,
        signal: null,
        timedOut,
        durationMs,
      }),
    },
    effects: ({ command }) => [{ kind: 'command', command, isTyped: true }],
    presentCall: ({ command }) => ({ card: 'terminal', title: command, data: { command } }),
    presentResult: ({ command }, { meta }) => presentBash({ command, description: command }, meta),
    async execute({ command }, { agent, token, signal }) {
      if (command.trim() === '') throw new ToolArgsError(['command: is blank'])
      if (command.includes('\0')) throw new ToolArgsError(['command: has a NUL character'])
      if (agent === undefined)
        throw new ToolError('INVALID_ARGS', 'bash was called by no agent, and its shell belongs to one')
      return await shells.run(agent, { command, token, signal })
    },
  })
}
