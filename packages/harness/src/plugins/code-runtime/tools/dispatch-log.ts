import type { ContentBlock, JsonValue } from '@dsh/protocol'
import { scopeTarget } from '../../../core/scope/index.ts'
import { cutText, utf8Length } from '../../../core/tools/index.ts'
import type {
  ToolCall,
  ToolExecutionInput,
  ToolExecutionResult,
  ToolRunContext,
} from '../../../core/tools/index.ts'
import { toJsonText } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'

const mostBytes = 8192

/** Tells the log of the calls of one program. What is long stands there cut short: the program alone had use for it. */
export class DispatchLog {
  readonly #ctx: Context
  readonly #exec: ToolRunContext

  constructor(ctx: Context, exec: ToolRunContext) {
    this.#ctx = ctx
    this.#exec = exec
  }

  started({ callId: subCallId, name, arguments: args }: ToolExecutionInput): void {
    const data = { callId: this.#exec.callId, subCallId, name, arguments: bounded(args as JsonValue) }
    this.#exec.agent?.session.append('tool/code-dispatch-start', data)
  }

  async done(input: ToolExecutionInput, { exec }: ToolCall, result: ToolExecutionResult): Promise<void> {
    const { agent, callId } = this.#exec
    if (agent === undefined) return
    const { callId: subCallId, name } = input
    const content = await this.#reshaped(exec, result.content.map(boundedBlock))
    const data = { callId, subCallId, name, content, isError: result.isError }
    agent.session.append('tool/code-dispatch', data)
  }

  async #reshaped(
    exec: ToolCall['exec'],
    content: readonly ContentBlock[],
  ): Promise<readonly ContentBlock[]> {
    const target = scopeTarget(this.#exec.agent)
    try {
      return await this.#ctx.waterfall(target, 'tools/code-dispatch-log', exec, content, async () => content)
    } catch (error) {
      this.#ctx.fiber.report(error, 'tools/code-dispatch-log')
      return content
    }
  }
}

function bounded(args: JsonValue): JsonValue {
  const text = toJsonText(args)
  return utf8Length(text) <= mostBytes ? args : cutText(text, mostBytes)
}

function boundedBlock(block: ContentBlock): ContentBlock {
  return block.type === 'text' ? { ...block, text: cutText(block.text, mostBytes, { keep: 'ends' }) } : block
}
