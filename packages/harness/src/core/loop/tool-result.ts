import type { CallId, ToolErrorInfo } from '@dsh/protocol'
import { createToolResultMessage } from '../llm/index.ts'
import { toolNotStartedText, toolOutcomeUnknownText } from '../session/index.ts'
import type { ToolExecutionFailure, ToolExecutionResult } from '../tools/index.ts'
import type { LoopHost, StepPlace } from './host.ts'

/** A call that a cancelled turn did not come to. */
export const abortedBeforeDispatch = failure(
  { name: 'AbortError', code: 'ABORTED_BEFORE_DISPATCH' },
  'Error: tool call aborted before dispatch',
)

/** A call that was not come to, because running those before it failed. */
export const notStarted = failure(
  { name: 'ToolNotStartedError', code: 'TOOL_NOT_STARTED' },
  toolNotStartedText,
)

/** A call that was started, and whose end nobody saw. */
export const outcomeUnknown = failure(
  { name: 'ToolOutcomeUnknownError', code: 'TOOL_OUTCOME_UNKNOWN' },
  toolOutcomeUnknownText,
)

interface LoggedResult {
  readonly callId: CallId
  /** Absent for a call that has no 'tool/call'. */
  readonly callSeq: number | undefined
  readonly result: ToolExecutionResult
}

export function logResult({ session }: LoopHost, place: StepPlace, logged: LoggedResult): void {
  const { turn, step } = place
  const { callId, callSeq, result } = logged
  const info = result.isError ? result.error.info : undefined
  const data = {
    turn,
    step,
    message: createToolResultMessage({
      callId,
      content: result.content,
      ...(result.isError ? { isError: true } : {}),
    }),
    ...(info === undefined ? {} : { error: info }),
    ...(result.meta === undefined ? {} : { meta: result.meta }),
  }
  const sources = callSeq === undefined ? {} : { sourceEventSeqs: [callSeq] }
  session.append('tool/result', data, { surfaceOp: 'append', ...sources })
}

function failure(info: ToolErrorInfo, text: string): ToolExecutionFailure {
  return { isError: true, error: { message: text, info }, content: [{ type: 'text', text }] }
}
