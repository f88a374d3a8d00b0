import type { EpochHeader, SessionEvent, UserMessage } from '@dsh/protocol'
import { inboxFold } from '../../core/agent/index.ts'
import { pendingCalls, requestHeader, turnCursor } from '../../core/session/index.ts'
import type { PendingCall, SessionView, TurnCursor } from '../../core/session/index.ts'
import { historyAt } from './rebuild.ts'
import type { History } from './rebuild.ts'
import { requestsOf } from './requests.ts'
import type { LoggedRequest } from './requests.ts'

/** A session right after one of its events. */
export interface Moment {
  readonly event: SessionEvent
  readonly cursor: TurnCursor
  /** Tool calls of the open step without a result, in the model's order. */
  readonly calls: readonly PendingCall[]
  /** The last request that had been begun. */
  readonly request: LoggedRequest | undefined
  /** Its answer was still to come. */
  readonly isAsking: boolean
  /** The messages that a request of this moment would have. */
  readonly history: History
  /** What it would say besides, unless something changes it. */
  readonly header: EpochHeader | undefined
  /** Waits to enter, in this order. */
  readonly queued: readonly UserMessage[]
}

/** The moment right after event `seq`. One pass over the events before it. Throws a RangeError where there is no such event. */
export function momentAt(session: SessionView, seq: number): Moment {
  const event = session.at(seq)
  if (event === undefined) throw new RangeError(`session "${session.id}" has no event ${seq}`)
  const before = seq + 1
  const request = requestsOf(session).findLast(each => each.seq <= seq)
  const inbox = session.fold(inboxFold, { before })
  return {
    event,
    cursor: session.fold(turnCursor, { before }),
    calls: session.fold(pendingCalls, { before }),
    request,
    isAsking: request !== undefined && (request.outcome.kind === 'open' || request.outcome.seq > seq),
    history: historyAt(session, before),
    header: session.fold(requestHeader, { before }),
    queued: [...inbox['next-step'], ...inbox['next-turn']],
  }
}
