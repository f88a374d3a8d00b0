import type { JsonValue, UserMessage } from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import type { RegisteredTool } from './registered.ts'
import { failure, failureOf, toContent, toContexts, withContexts } from './result.ts'
import { wellFormed } from './text.ts'
import type { ToolExecutionFailure, ToolExecutionResult } from './tool.ts'

/** What a wrapper gave, read once and not yet believed. */
interface GivenResult {
  readonly isError?: unknown
  readonly value?: unknown
  readonly concludesTurn?: unknown
  readonly additionalContexts?: unknown
  readonly error?: Partial<ToolExecutionFailure['error']>
  readonly content?: unknown
  readonly meta?: JsonValue
}

interface GivenCall {
  readonly args: JsonValue
  readonly isNested: boolean
  /** Throws UNKNOWN_TOOL where there is none. */
  tool(): RegisteredTool
}

/**
 * The result that a wrapper of the dispatch made up: a failure as it is, a success only if its value fits what the tool
 * declares, and then rendered by the tool. Throws a TypeError for what is no result.
 */
export async function settleGiven(given: unknown, call: GivenCall): Promise<ToolExecutionResult> {
  const { isError, value, concludesTurn, additionalContexts, ...rest } = (given ?? {}) as GivenResult
  const contexts = toContexts(additionalContexts, 'additionalContexts')
  if (isError === true) return readFailure(rest, contexts)
  if (isError !== false) throw new TypeError('a tools/execute listener gave no result')
  try {
    const { args, isNested, tool } = call
    const concludes = concludesTurn === true
    return withContexts(await tool().toSuccess(value, { args, isNested, concludes }), contexts)
  } catch (error) {
    return withContexts(failureOf(error), contexts)
  }
}

function readFailure(given: GivenResult, contexts: readonly UserMessage[]): ToolExecutionFailure {
  const { error, content, meta } = given
  const { message, info } = error ?? {}
  const shown = content === undefined ? [] : toContent(content, 'content')
  return failure(wellFormed(String(message ?? 'failed')), {
    info: info === undefined ? undefined : adopt(info),
    // A model that is shown nothing would not know that the call failed.
    content: shown.length === 0 ? undefined : shown,
    meta: meta === undefined ? undefined : adopt(meta),
    contexts,
  })
}
