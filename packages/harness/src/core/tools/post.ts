import type { JsonValue } from '@dsh/protocol'
import type { RegisteredTool } from './registered.ts'
import { failure, textContent, toContent, toContexts, withContent, withContexts } from './result.ts'
import type { PostToolDecision, ToolExecutionResult } from './tool.ts'

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
  switch ((decision as PostToolDecision | undefined)?.kind) {
    case 'accept':
    case 'block':
      break
    default:
      throw new TypeError('a tools/post-execute listener gave no decision')
  }
  const added = toContexts(decision.additionalContexts, 'additionalContexts')
  if (decision.kind === 'block') {
    const feedback = String(decision.feedback)
    return failure(feedback, { content: textContent(feedback), contexts: added })
  }
  const accepted = await replace(decision, result, call)
  const contexts = [...(result.additionalContexts ?? []), ...added]
  return contexts.length === 0 ? accepted : withContexts(accepted, contexts)
}

async function replace(
  { content, value }: Extract<PostToolDecision, { kind: 'accept' }>,
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
