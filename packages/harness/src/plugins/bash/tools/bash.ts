import { isAbsolute, join } from 'node:path'
import { scopeTarget } from '../../../core/scope/index.ts'
import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type { CapturedOutput } from '../../subprocess/index.ts'
import { boundOutput } from '../output.ts'
import { presentBash } from '../present.ts'
import { joinEnds, renderBash } from '../render.ts'
import type { BashSpec } from '../service.ts'

export interface BashToolConfig {
  /** Shown of each of both outputs; what is more goes to the session's artifacts. */
  readonly maxOutputBytes: number
}

export const bashSection =
  'Each bash call is a fresh shell without a terminal or input; send the output of servers to a file and end them with &.'

const description = 'Run a shell command and get its output and exit code.'

export function bashTool(ctx: Context, config: BashToolConfig): ToolDefinition {
  const { timeoutMs } = ctx.bash.resolve({ command: '' })
  return defineTool({
    name: 'bash',
    description,
    parameters: {
      command: { type: 'string', required: true },
      description: { type: 'string', required: true, description: 'what it does, in 5-10 words' },
      timeoutMs: { type: 'number', description: `default ${timeoutMs}` },
      workdir: { type: 'string', description: 'default: the working folder' },
    },
    output: {
      schema: {
        stdout: { type: 'string', required: true },
        stderr: { type: 'string', required: true },
        exitCode: { oneOf: [{ type: 'integer' }, { type: 'null' }], required: true },
        signal: { oneOf: [{ type: 'string' }, { type: 'null' }], required: true },
        timedOut: { type: 'boolean', required: true },
        timeoutMs: { type: 'number', required: true },
        durationMs: { type: 'integer', required: true },
        shell: { type: 'string', enum: ['bash', 'sh'], required: true },
        survivors: {
          type: 'array',
          required: true,
          items: {
            type: 'object',
            additionalProperties: false,
            properties: {
              pid: { type: 'integer', required: true },
              startTime: { type: 'string', required: true },
              command: { type: 'string', required: true },
            },
          },
        },
        outputs: {
          type: 'object',
          required: true,
          additionalProperties: false,
          properties: { stdout: outputFacts, stderr: outputFacts },
        },
      },
      render: (_args, value) => renderBash(value),
      // The texts themselves stand in the content.
      presentationMeta(_args, value) {
        const { exitCode, signal, timedOut, timeoutMs, durationMs, shell, survivors, outputs } = value
        return { exitCode, signal, timedOut, timeoutMs, durationMs, shell, survivors, outputs }
      },
    },
    effects: ({ command, workdir }) => [
      { kind: 'command', command, ...(workdir !== undefined && { workdir }) },
    ],
    presentCall: ({ command, description: title }) => ({ card: 'terminal', title, data: { command } }),
    presentResult: (args, { meta }) => presentBash(args, meta),
    async execute(args, exec) {
      const result = await ctx.bash.run(toSpec(ctx, args, exec))
      // What a cancelled command printed is nobody's.
      exec.signal.throwIfAborted()
      const [stdout, stderr] = await Promise.all([
        show(result.stdout, config, exec),
        show(result.stderr, config, exec),
      ])
      const { exitCode, signal, timedOut, timeoutMs, durationMs, shell, survivors } = result
      return {
        stdout: stdout.text,
        stderr: stderr.text,
        exitCode,
        signal,
        timedOut,
        timeoutMs,
        durationMs,
        shell,
        survivors: survivors.map(({ pid, startTime, command }) => ({ pid, startTime, command })),
        outputs: { stdout: stdout.facts, stderr: stderr.facts },
      }
    },
  })
}

const outputFacts = {
  type: 'object',
  required: true,
  additionalProperties: false,
  properties: {
    bytes: { type: 'integer', required: true },
    omittedBytes: { type: 'integer', required: true },
    artifact: { type: 'string' },
  },
} as const

interface BashArguments {
  readonly command: string
  readonly timeoutMs?: number
  readonly workdir?: string
}

/** Fields are picked by name: whatever else a model sends goes nowhere. */
function toSpec(
  ctx: Context,
  { command, timeoutMs, workdir }: BashArguments,
  exec: ToolRunContext,
): BashSpec {
  if (command.trim() === '') throw new ToolArgsError(['command: is blank'])
  if (command.includes('\0')) throw new ToolArgsError(['command: has a NUL character'])
  if (timeoutMs !== undefined && timeoutMs <= 0)
    throw new ToolArgsError([`timeoutMs: must be more than 0, not ${timeoutMs}`])
  const { agent, callId, signal } = exec
  const folder = workdirOf(agent?.session.header.cwd, workdir)
  const spec = ctx.bash.resolve({
    command,
    ...(folder === undefined ? {} : { workdir: folder }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  const carrier = scopeTarget(agent)
  return {
    ...spec,
    signal,
    onOutput: (stream, text) => ctx.emit(carrier, 'bash/output', { agent, callId, stream, text }),
  }
}

function workdirOf(cwd: string | undefined, workdir: string | undefined): string | undefined {
  if (workdir === undefined || workdir === '') return cwd
  if (isAbsolute(workdir)) return workdir
  if (cwd === undefined)
    throw new ToolArgsError([`workdir: "${workdir}" is not absolute, and there is no session`])
  return join(cwd, workdir)
}

interface Shown {
  readonly text: string
  readonly facts: { readonly bytes: number; readonly omittedBytes: number; readonly artifact?: string }
}

async function show(output: CapturedOutput, config: BashToolConfig, exec: ToolRunContext): Promise<Shown> {
  const bounded = boundOutput(output, config.maxOutputBytes)
  const { omittedBytes, kept } = bounded
  const artifact = kept === undefined ? undefined : await keep(kept, exec)
  const facts = { bytes: output.totalBytes, omittedBytes }
  return {
    text: joinEnds(bounded, artifact),
    facts: artifact === undefined ? facts : { ...facts, artifact },
  }
}

/** A store that is full or gone costs the rest of the output, not the call. */
async function keep(text: string, { agent }: ToolRunContext): Promise<string | undefined> {
  try {
    return (await agent?.session.artifacts.put(Buffer.from(text), 'text/plain'))?.sha256
  } catch {
    return undefined
  }
}
