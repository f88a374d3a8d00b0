import type { JsonValue } from '@dsh/protocol'
import type { RegisteredTool } from './registered.ts'
import { failure, textContent, toContent, toContexts, withContent, withContexts } from './result.ts'
import type { PostToolDecision, ToolExecutionResult } from './tool.ts'

/** Any decision, read once and not yet believed. */
interface Decision {
  readonly kind?: unknown
  readonly feedback?: unknown
  readonly additionalContexts?: unknown
  readonly content?: unknown
  readonly value?: unknown
}

const blockedText = 'blocked by policy'

interface PostCall {
  readonly args: JsonValue
  readonly isNested: boolean
  /** Undefined once the tool is gone. */
  tool(): RegisteredTool | undefined
}

/** The result after policy has seen it. Throws for a decision that contradicts itself or the result. */
export async function settlePost(
  decision: PostToolDecision,
  result: ToolExecutionResult,
  call: PostCall,
): Promise<ToolExecutionResult> {
  const { kind, feedback, additionalContexts, content, value } = (decision ?? {}) as Decision
  const added = toContexts(additionalContexts, 'additionalContexts')
  switch (kind) {
    case 'block': {
      const text = typeof feedback === 'string' && feedback !== '' ? feedback : blockedText
      return failure(text, { content: textContent(text), contexts: added })
    }
    case 'accept': {
      const accepted = await replace({ content, value }, result, call)
      const contexts = [...(result.additionalContexts ?? []), ...added]
      return contexts.length === 0 ? accepted : withContexts(accepted, contexts)
    }
    default:
      throw new TypeError('a tools/post-execute listener gave no decision')
  }
}

async function replace(
  { content, value }: Pick<Decision, 'content' | 'value'>,
  result: ToolExecutionResult,
  { args, isNested, tool }: PostCall,
): Promise<ToolExecutionResult> {
  if (content !== undefined && value !== undefined) {
    throw new TypeError('a tools/post-execute listener replaced both content and value')
  }
  if (content !== undefined) return withContent(result, toContent(content, 'content'))
  if (value === undefined) return result
  const owner = tool()
  if (result.isError) throw new TypeError('a tools/post-execute listener gave a value to a failed call')
  if (owner === undefined)
    throw new TypeError('a tools/post-execute listener gave a value, but the tool is gone')
  return owner.toSuccess(value, { args, isNested, concludes: result.concludesTurn === true })
}
