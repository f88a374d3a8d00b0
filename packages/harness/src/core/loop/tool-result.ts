import type { CallId } from '@dsh/protocol'
import { createToolResultMessage } from '../llm/index.ts'
import { toolNotStarted, toolOutcomeUnknown } from '../session/index.ts'
import type { ToolExecutionFailure, ToolExecutionResult } from '../tools/index.ts'
import type { LoopHost, StepPlace } from './host.ts'

/** A call that was not come to, because running those before it failed. */
export const notStarted = failure(toolNotStarted)

/** A call that was started, and whose end nobody saw. */
export const outcomeUnknown = failure(toolOutcomeUnknown)

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

function failure(fate: typeof toolNotStarted | typeof toolOutcomeUnknown): ToolExecutionFailure {
  const { error, text } = fate
  return { isError: true, error: { message: text, info: error }, content: [{ type: 'text', text }] }
}
