import { CallId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import { ToolError } from './errors.ts'
import type { ToolDispatchExecution, ToolExecutionInput } from './tool.ts'

export interface ReadInput {
  /** Frozen, but for its signal. */
  readonly exec: ToolDispatchExecution
  /** Why the call cannot be made. */
  readonly problem?: unknown
  /** Makes the signal as fixed as the rest. */
  close(): void
}

/** Reads each property of `input` once. What cannot be read is the problem of the call, not of its caller. */
export function readInput(input: ToolExecutionInput): ReadInput {
  try {
    const { callId, rootCallId = callId, name, arguments: given, signal, ...others } = input
    if (!(signal instanceof AbortSignal)) throw new TypeError('a tool call needs a signal')
    const { args, problem } = snapshot(given)
    const fixed = { ...others, callId, rootCallId, name: String(name), arguments: args }
    return { ...seal(fixed, signal), problem }
  } catch (problem) {
    const none = CallId('')
    const { signal } = new AbortController()
    return { ...seal({ callId: none, rootCallId: none, name: '', arguments: null }, signal), problem }
  }
}

function seal(
  fixed: Omit<ToolDispatchExecution, 'token' | 'signal'>,
  initial: AbortSignal,
): Pick<ReadInput, 'exec' | 'close'> {
  let current = initial
  let isOpen = true
  const exec = Object.freeze({
    ...fixed,
    token: Symbol('tool call'),
    get signal() {
      return current
    },
    set signal(next) {
      if (!isOpen) throw new TypeError('the signal of a call cannot change once its result is there')
      current = next
    },
  })
  return {
    exec,
    close: () => {
      isOpen = false
    },
  }
}

/** No arguments at all are an empty object. */
function snapshot(given: unknown): { readonly args: JsonValue; readonly problem?: unknown } {
  if (given === undefined) return { args: Object.freeze({}) }
  try {
    return { args: adopt(given, 'arguments') as JsonValue }
  } catch (error) {
    return { args: null, problem: new ToolError('INVALID_ARGS', (error as Error).message) }
  }
}
