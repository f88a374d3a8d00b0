import type { LlmFailure, SessionEvent } from '@dsh/protocol'
import type { FoldDefinition, SessionView } from '../../core/session/index.ts'
import type {} from '../retry/events.ts'

/** What came of a request. Seqs are those of the events that say so. */
export type RequestOutcome =
  | { readonly kind: 'answered'; readonly seq: number }
  | { readonly kind: 'failed'; readonly seq: number; readonly failure: LlmFailure }
  /** The answer broke off; `seq` is what became of its visible part, or the end of the step. */
  | { readonly kind: 'cut'; readonly seq: number }
  /** Not one piece of an answer is in the log, so nobody knows whether the request left. */
  | { readonly kind: 'silent'; readonly seq: number }
  /** It runs, or the log ends here. */
  | { readonly kind: 'open' }

/** One request of the loop, a retry too, as the log tells of it. */
export interface LoggedRequest {
  /** Counts all requests of the session, from 1. */
  readonly n: number
  readonly turn: number
  readonly step: number
  /** From 1 in each step. */
  readonly attempt: number
  /** Where in the log it begins: the start of its step, or behind the attempt before. */
  readonly from: number
  /** It was made of the events before this one. */
  readonly seq: number
  /** The 'request/header' it was sent with; undefined where the log breaks off before one. */
  readonly headerSeq: number | undefined
  readonly outcome: RequestOutcome
}

interface OpenRequest extends Omit<LoggedRequest, 'n' | 'seq' | 'headerSeq' | 'outcome'> {
  /** Seq of the first chunk. */
  readonly firstChunk?: number
}

interface Chain {
  readonly request: LoggedRequest
  readonly before: Chain | undefined
}

/** Newest first, so that a new request costs the same in a long session as in a short one. */
interface RequestLog {
  readonly chain: Chain | undefined
  readonly open: OpenRequest | undefined
  readonly headerSeq: number | undefined
}

const types = [
  'step/start',
  'step/end',
  'request/header',
  'assistant/chunk',
  'assistant/message',
  'llm/retry-started',
] as const

const requestLog: FoldDefinition<RequestLog, (typeof types)[number]> = {
  name: 'requests',
  types,
  init: () => ({ chain: undefined, open: undefined, headerSeq: undefined }),
  apply(log, event) {
    switch (event.type) {
      case 'step/start': {
        const { turn, step } = event.data
        return { ...log, open: { turn, step, attempt: 1, from: event.seq } }
      }
      case 'request/header':
        return { ...log, headerSeq: event.seq }
      case 'llm/retry-started':
        return log.open === undefined ? { ...log, open: nextAttempt(log.chain, event.data) } : log
      case 'assistant/chunk':
        return withChunk(log, event)
      case 'assistant/message': {
        const { surfaceOp, seq, data } = event
        if (log.open === undefined || surfaceOp !== 'append') return log
        return closed(log, log.open, { kind: data.interrupted === true ? 'cut' : 'answered', seq })
      }
      case 'step/end': {
        const { open } = log
        if (open === undefined) return log
        return closed(log, open, { kind: open.firstChunk === undefined ? 'silent' : 'cut', seq: event.seq })
      }
    }
  },
}

/** All requests of a log, the first first. One that the log ends in is the last. */
export function requestsOf(session: SessionView): readonly LoggedRequest[] {
  const log = session.fold(requestLog)
  const { open } = log
  const last = open === undefined ? log : closed(log, open, { kind: 'open' }, session.length)
  const requests: LoggedRequest[] = []
  for (let at = last.chain; at !== undefined; at = at.before) requests.push(at.request)
  return requests.reverse()
}

/** `2.1`, and for a retry `2.1.2`. */
export function placeOf({ turn, step, attempt }: Pick<LoggedRequest, 'turn' | 'step' | 'attempt'>): string {
  return attempt === 1 ? `${turn}.${step}` : `${turn}.${step}.${attempt}`
}

function withChunk(log: RequestLog, { seq, data }: SessionEvent<'assistant/chunk'>): RequestLog {
  const known = log.open ?? nextAttempt(log.chain, data)
  if (known === undefined) return log
  const open = known.firstChunk === undefined ? { ...known, firstChunk: seq } : known
  const { chunk } = data
  const reason = chunk.type === 'finish' ? chunk.reason : undefined
  if (reason?.kind === 'error' || reason?.kind === 'aborted')
    return closed(log, open, { kind: 'failed', seq, failure: reason.failure })
  return open === log.open ? log : { ...log, open }
}

function nextAttempt(
  chain: Chain | undefined,
  { turn, step }: { readonly turn: number; readonly step: number },
): OpenRequest | undefined {
  const last = chain?.request
  if (last === undefined || last.turn !== turn || last.step !== step || last.outcome.kind === 'open')
    return undefined
  return { turn, step, attempt: last.attempt + 1, from: last.outcome.seq + 1 }
}

function closed(log: RequestLog, open: OpenRequest, outcome: RequestOutcome, end?: number): RequestLog {
  const { headerSeq, chain } = log
  const { firstChunk, ...place } = open
  const seq = firstChunk ?? (outcome.kind === 'open' ? (end ?? 0) : outcome.seq)
  // A step that ended before it ever said what to ask asked nothing.
  if (headerSeq === undefined) return { ...log, open: undefined }
  const request = { n: (chain?.request.n ?? 0) + 1, ...place, seq, headerSeq, outcome }
  return { chain: { request, before: chain }, open: undefined, headerSeq }
}
