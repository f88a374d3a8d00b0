import type { SessionEvent } from '@dsh/protocol'
import { rebuildRequest } from '../../src/core/invariants/index.ts'
import type { GenerateOptions } from '../../src/core/llm/index.ts'
import type { Witness } from '../../src/testing/crash/ledger.ts'

/** The request left when the log had so many events; they must give it again. */
export function sameRequest(
  length: number,
  request: Pick<GenerateOptions, 'messages' | 'system' | 'tools'>,
): Witness {
  const { messages, system, tools } = request
  const text = JSON.stringify([messages, system, tools])
  return stored => {
    if (stored.length < length)
      return `a request was sent behind event ${length - 1}, and ${stored.length} are stored`
    const parts = rebuildRequest(stored.slice(0, length))
    const rebuilt = JSON.stringify([parts.messages, parts.header?.system, parts.header?.tools])
    return rebuilt === text ? undefined : `the request behind event ${length - 1} is rebuilt as another`
  }
}

/** The body of a call has begun, so the log must say that it may have done something. */
export function startedCall(callId: string): Witness {
  return (stored: readonly SessionEvent[]) => {
    const has = (type: 'tool/call' | 'tool/start'): boolean =>
      stored.some(event => event.type === type && event.data.callId === callId)
    return has('tool/call') && has('tool/start')
      ? undefined
      : `call ${callId} has run, and the log does not say so`
  }
}
