import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { presentBash } from '../present.ts'
import { renderBash } from '../render.ts'
import { LeftRunning } from './left-running.ts'
import { bashOutput, bashParameters } from './parameters.ts'
import type { BashOffer } from './parameters.ts'
import { runCall } from './run.ts'

export interface BashToolConfig {
  /** Shown of each of both outputs; what is more goes to the session's artifacts. */
  readonly maxOutputBytes: number
}

const description = 'Run a shell command and get its output and exit code.'

/** What a model is told of commands besides their schema, by what the composition can do. */
export function bashSection({ background, escalation }: Omit<BashOffer, 'timeoutMs'>): string {
  return [
    'Each bash call is a fresh shell without a terminal or input.',
    background
      ? 'What it leaves running may end with it: use run_in_background for servers.'
      : 'Send the output of servers to a file and end them with &.',
    ...(escalation
      ? [
          'Commands are sandboxed, each with its own loopback: use a server in the call that starts it. Just try; when the result says the sandbox denied what you need, ask once with sandbox_permissions; a refusal is final.',
        ]
      : []),
  ].join(' ')
}

export function bashTool(ctx: Context, offer: BashOffer, config: BashToolConfig): ToolDefinition {
  const place = { maxOutputBytes: config.maxOutputBytes, left: new LeftRunning() }
  return defineTool({
    name: 'bash',
    description,
    parameters: bashParameters(offer),
    output: {
      schema: bashOutput,
      render: (_args, value) => renderBash(value),
      // The texts themselves stand in the content.
      presentationMeta: (_args, { stdout: _stdout, stderr: _stderr, ...facts }) => facts,
    },
    effects({ command, workdir, sandbox_permissions: access, justification }) {
      const wants =
        access === undefined || justification === undefined ? {} : { wants: { access, justification } }
      return [{ kind: 'command', command, ...(workdir !== undefined && { workdir }), ...wants }]
    },
    presentCall: ({ command, description: title }) => ({ card: 'terminal', title, data: { command } }),
    presentResult: (args, { meta }) => presentBash(args, meta),
    execute: (args, exec) => runCall(ctx, place, args, exec),
  })
}
