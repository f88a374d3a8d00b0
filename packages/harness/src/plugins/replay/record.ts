import type { EpochHeader, SessionEvent, StreamChunk, TurnEndReason } from '@dsh/protocol'
import { mergeDeltas } from '../../core/session/index.ts'
import type { SessionView } from '../../core/session/index.ts'
import { rebuildRequests, requestsOf } from '../time-travel/index.ts'
import type { LoggedRequest } from '../time-travel/index.ts'
import type { Redaction } from '../session-export/index.ts'
import { ReplayError } from './errors.ts'
import { Portable } from './portable.ts'
import type { CanonicalRequest } from './portable.ts'
import type {
  RecordedMessage,
  RecordedPermission,
  RecordedRequest,
  RecordedResult,
  Recording,
} from './recording.ts'

export interface RecordOptions {
  /** The home folder of whoever ran the session. */
  readonly home?: string
  /** Takes secrets out. */
  readonly redaction?: Redaction
}

/** What happened between a request and the next one. */
interface Stretch {
  readonly entered: RecordedMessage[]
  readonly chunks: StreamChunk[]
  readonly results: RecordedResult[]
  permission: RecordedPermission
  end: TurnEndReason | undefined
}

/**
 * A session as a recording. Two passes over the log, whatever is in it. Throws NOTHING_TO_RECORD where nothing was
 * asked.
 */
export function recordSession(session: SessionView, options: RecordOptions = {}): Recording {
  const logged = requestsOf(session)
  if (logged.length === 0)
    throw new ReplayError('NOTHING_TO_RECORD', `session "${session.id}" asked no model anything`)
  const { home, redaction } = options
  const portable = new Portable({ workspace: session.header.cwd, home, redaction })
  const stretches = stretchesOf(session, logged)
  const rebuilt = rebuildRequests(
    session,
    logged.map(({ seq }) => seq),
  )
  const requests: RecordedRequest[] = []
  let place = { turn: 0, step: 0, logged: undefined as LoggedRequest | undefined }
  for (const [index, parts] of [...rebuilt].entries()) {
    const each = logged[index] as LoggedRequest
    const stretch = stretches[index] as Stretch
    place = nextPlace(place, each)
    // Only requests behind a header are logged as such.
    const request = portable.canonical(parts?.header as EpochHeader, parts?.messages ?? [])
    const { turn, step } = place
    const isLast = index === logged.length - 1
    requests.push(toRecorded(each, stretch, { turn, step, request, portable, isLast }))
  }
  return { requests }
}

interface Place {
  readonly turn: number
  readonly step: number
  readonly logged: LoggedRequest | undefined
}

function nextPlace({ turn, step, logged }: Place, next: LoggedRequest): Place {
  if (logged?.turn !== next.turn) return { turn: turn + 1, step: 1, logged: next }
  return { turn, step: logged.step === next.step ? step : step + 1, logged: next }
}

function toRecorded(
  logged: LoggedRequest,
  { entered, chunks, results, permission, end }: Stretch,
  context: {
    readonly turn: number
    readonly step: number
    readonly request: CanonicalRequest
    readonly portable: Portable
    readonly isLast: boolean
  },
): RecordedRequest {
  const { turn, step, request, portable, isLast } = context
  const { attempt, outcome } = logged
  // A log that ends in the middle of a turn ended it.
  const isOver = outcome.kind === 'answered' && results.length > 0 && (end !== undefined || isLast)
  return {
    turn,
    step,
    attempt,
    request,
    ...(Object.keys(permission).length === 0 ? {} : { permission }),
    entered: portable.out(entered),
    answer: portable.out(mergeDeltas(chunks)),
    outcome: outcome.kind === 'open' ? (chunks.length === 0 ? 'silent' : 'cut') : outcome.kind,
    results: portable.out(results),
    ...(isOver ? { end: end?.kind === 'completed' ? 'concluded' : 'stopped' } : {}),
  }
}

interface CallText {
  readonly name: string
  readonly arguments: string
}

/** What followed each request, in one pass. */
function stretchesOf(session: SessionView, logged: readonly LoggedRequest[]): Stretch[] {
  const stretches = logged.map((): Stretch => ({
    entered: [],
    chunks: [],
    results: [],
    permission: {},
    end: undefined,
  }))
  let permission: RecordedPermission = {}
  const calls = new Map<string, CallText>()
  let at = -1
  for (const event of session.since(0)) {
    for (; (logged[at + 1]?.from ?? Infinity) <= event.seq; at++) {
      const next = stretches[at + 1]
      if (next !== undefined) next.permission = permission
    }
    if (event.type === 'sandbox/mode') permission = { ...permission, mode: event.data.mode }
    if (event.type === 'approval/policy') permission = { ...permission, policy: event.data.policy }
    const stretch = stretches[at]
    const place = logged[at]
    if (stretch === undefined || place === undefined) continue
    take(event, stretch, { place, calls })
  }
  return stretches
}

function take(
  event: SessionEvent,
  stretch: Stretch,
  { place, calls }: { readonly place: LoggedRequest; readonly calls: Map<string, CallText> },
): void {
  switch (event.type) {
    case 'user/message':
      if (event.surfaceOp === 'append' && event.seq < place.seq) {
        const { content, source } = event.data
        stretch.entered.push({ content, source })
      }
      return
    case 'assistant/chunk':
      stretch.chunks.push(event.data.chunk)
      return
    case 'assistant/message':
      for (const block of event.data.message.content) {
        if (block.type === 'tool-call') calls.set(block.id, block)
      }
      return
    case 'tool/result':
      if (event.surfaceOp === 'append') stretch.results.push(toResult(event, calls))
      return
    case 'turn/end':
      if (event.data.turn === place.turn) stretch.end = event.data.reason
  }
}

function toResult(
  { data }: SessionEvent<'tool/result'>,
  calls: ReadonlyMap<string, CallText>,
): RecordedResult {
  const [{ toolCallId: callId, content, isError = false }] = data.message.content
  const { error, meta } = data
  const { name, arguments: args } = calls.get(callId) ?? { name: '', arguments: '' }
  return {
    callId,
    name,
    arguments: args,
    content,
    isError,
    ...(error === undefined ? {} : { error }),
    ...(meta === undefined ? {} : { meta }),
  }
}
