import type {
  ToolDispatchExecution,
  ToolExecutionFailure,
  ToolExecutionResult,
} from '../../core/tools/index.ts'
import { HarnessError } from '../../kernel/index.ts'

export class LeakError extends HarnessError<'TOOL_LEAKED'> {
  static {
    this.prototype.name = 'LeakError'
  }

  constructor(tool: string, graceMs: number) {
    super(
      'TOOL_LEAKED',
      `tool "${tool}" did not stop within ${graceMs} ms and was left behind, still running`,
    )
  }
}

export interface DeadlineOptions {
  /** Absent = as long as it takes. */
  readonly timeoutMs: number | undefined
  readonly graceMs: number
  /** Hears of a body that is not waited for any longer. */
  leaked(): void
}

type Cause = 'timeout' | 'caller'

/**
 * What `next` gives, unless the time is over before. Whoever comes first, the caller with an abort or the deadline,
 * decides what the call failed of, and a late success counts no more.
 */
export async function withDeadline(
  exec: ToolDispatchExecution,
  next: () => Promise<ToolExecutionResult>,
  { timeoutMs, graceMs, leaked }: DeadlineOptions,
): Promise<ToolExecutionResult> {
  const caller = exec.signal
  const controller = new AbortController()
  const abandoned = Promise.withResolvers<undefined>()
  let cause: Cause | undefined
  let grace: NodeJS.Timeout | undefined
  const stop = (why: Cause, reason: unknown): void => {
    if (cause !== undefined) return
    cause = why
    controller.abort(reason)
    grace = setTimeout(() => abandoned.resolve(undefined), graceMs)
  }
  const onAbort = (): void => stop('caller', caller.reason)
  if (caller.aborted) onAbort()
  else caller.addEventListener('abort', onAbort, { once: true })
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => stop('timeout', new DOMException('the time is over', 'TimeoutError')), timeoutMs)
  exec.signal = controller.signal
  try {
    const work = next()
    // Once it is abandoned nobody hears how it ends.
    work.catch(() => {})
    const result = await Promise.race([work, abandoned.promise])
    if (result === undefined) leaked()
    return resultOf(result, cause, timeoutMs)
  } finally {
    clearTimeout(timer)
    clearTimeout(grace)
    caller.removeEventListener('abort', onAbort)
    exec.signal = caller
  }
}

function resultOf(
  result: ToolExecutionResult | undefined,
  cause: Cause | undefined,
  timeoutMs: number | undefined,
): ToolExecutionResult {
  const still = result === undefined ? ' and did not stop; it may still be at work' : ''
  if (cause === 'timeout')
    return failure(`tool call timed out after ${timeoutMs}ms${still}`, 'ToolTimeoutError', 'TOOL_TIMEOUT')
  return result ?? failure(`tool call aborted${still}`, 'AbortError', 'ABORTED')
}

function failure(message: string, name: string, code: string): ToolExecutionFailure {
  return {
    isError: true,
    error: { message, info: { name, code } },
    content: [{ type: 'text', text: `Error: ${message}` }],
  }
}
