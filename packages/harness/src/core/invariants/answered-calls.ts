import type { PendingCall } from '../session/index.ts'
import { pendingCalls } from '../session/index.ts'
import type { LogCheck } from './log-check.ts'

const types: ReadonlySet<string> = new Set(pendingCalls.types)

/** A step ends when every call of its answer has a result: a history with an open call is one no provider takes. */
export const answeredCalls: LogCheck<readonly PendingCall[]> = {
  name: 'answered calls',
  start: [],
  problem(state, event) {
    const [first] = state
    if (first === undefined || event.type !== 'step/end') return undefined
    return `the step ends while call "${first.callId}" has no result`
  },
  after: (state, event) => (types.has(event.type) ? pendingCalls.apply(state, event as never) : state),
}
