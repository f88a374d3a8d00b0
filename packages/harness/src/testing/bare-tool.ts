import { CallId, MessageId } from '@dsh/protocol'
import type { UserMessage } from '@dsh/protocol'
import { ToolRuntime } from '../core/tools/index.ts'
import type {
  ToolDefinition,
  ToolExecutionInput,
  ToolExecutionResult,
  ToolRunContext,
} from '../core/tools/index.ts'
import { Context } from '../kernel/index.ts'

export type Body = (args: unknown, exec: ToolRunContext) => unknown

/** The tool `work` and nothing else; `calls` tells when its body ran, `run` calls it. */
export function bareTool(body: Body = () => 'done', more: Partial<ToolDefinition> = {}) {
  const ctx = new Context()
  void ctx.plugin(ToolRuntime)
  const calls: string[] = []
  const definition: ToolDefinition = {
    name: 'work',
    description: 'Works',
    parameters: { type: 'object' },
    output: {
      schema: { type: 'string' },
      render: (_args, value) => [{ type: 'text', text: `[${value as string}]` }],
      presentationMeta: (_args, value) => ({ shown: value }),
    },
    execute: (args, exec) => {
      calls.push('body')
      return body(args, exec)
    },
    ...more,
  }
  ctx.tools.register(definition)
  const controller = new AbortController()
  const input = (part: object = {}): ToolExecutionInput =>
    ({
      callId: CallId('c1'),
      name: 'work',
      arguments: {},
      signal: controller.signal,
      ...part,
    }) as ToolExecutionInput
  const run = (part: object = {}): Promise<ToolExecutionResult> => ctx.tools.execute(input(part))
  return { ctx, calls, controller, input, run }
}

export function note(text: string): UserMessage {
  return {
    id: MessageId(text),
    role: 'user',
    content: [{ type: 'text', text }],
    source: { kind: 'plugin', plugin: 'test' },
  }
}

export function textOf(result: ToolExecutionResult): string {
  return result.content.map(block => (block.type === 'text' ? block.text : block.type)).join('\n')
}

export function codeOf(result: ToolExecutionResult): string | undefined {
  return result.isError ? result.error.info?.code : undefined
}

export function contextsOf(result: ToolExecutionResult): string[] | undefined {
  return result.additionalContexts?.map(message => message.id)
}
