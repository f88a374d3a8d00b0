import type { EpochHeader, Message, SessionEvent } from '@dsh/protocol'
import type { GenerateOptions } from '../../core/llm/index.ts'
import {
  canonicalHeader,
  deriveEventMessage,
  requestHeader,
  SurfaceManager,
} from '../../core/session/index.ts'
import type { SessionView } from '../../core/session/index.ts'

export interface History {
  readonly messages: readonly Message[]
  /** The event that put each message there. */
  readonly seqs: readonly number[]
}

export interface RebuiltRequest extends History {
  /** What the loop sent, byte for byte; only the signal is not there. */
  readonly request: GenerateOptions
  readonly header: EpochHeader
}

/**
 * The request that would be sent with the events before `seq` as the log. One pass over those events. Undefined where
 * none of them says what to ask.
 */
export function rebuildRequest(session: SessionView, seq: number): RebuiltRequest | undefined {
  const header = session.fold(requestHeader, { before: seq })
  if (header === undefined) return undefined
  const history = historyAt(session, seq)
  return { ...history, header, request: toRequest(header, history.messages, session) }
}

/** The model's view of the events before `seq`. */
export function historyAt(session: SessionView, seq: number): History {
  return historyOf(new SurfaceManager(eventsBefore(session, seq)), session)
}

/** The requests before each of `seqs`, which ascend, in one pass over the log. */
export function* rebuildRequests(
  session: SessionView,
  seqs: Iterable<number>,
): Generator<RebuiltRequest | undefined, void, undefined> {
  const surface = new SurfaceManager()
  let header: EpochHeader | undefined
  let next = 0
  for (const seq of seqs) {
    for (; next < seq; next++) {
      const event = session.at(next) as SessionEvent
      surface.append(event)
      if (event.type === 'request/header') header = canonicalHeader(event.data.header)
    }
    const history = historyOf(surface, session)
    yield header && { ...history, header, request: toRequest(header, history.messages, session) }
  }
}

function toRequest(header: EpochHeader, messages: readonly Message[], { id }: SessionView): GenerateOptions {
  const { config, system, tools } = header
  return Object.freeze({
    ...config,
    messages,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
    sessionId: id,
  })
}

function historyOf({ surface, messages }: SurfaceManager, session: SessionView): History {
  const { nodes } = surface
  if (nodes.length === messages.length) return { messages, seqs: nodes }
  const isSaid = (seq: number): boolean => {
    const event = session.at(seq)
    return event !== undefined && deriveEventMessage(event) !== null
  }
  return { messages, seqs: nodes.filter(isSaid) }
}

function* eventsBefore(session: SessionView, end: number): Generator<SessionEvent, void, undefined> {
  for (const event of session.since(0)) {
    if (event.seq >= end) return
    yield event
  }
}
