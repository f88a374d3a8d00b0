import type { EpochHeader } from '@dsh/protocol'
import { mergeDeltas } from '../../core/session/index.ts'
import type { SessionView } from '../../core/session/index.ts'
import { rebuildRequests, requestsOf } from '../time-travel/index.ts'
import type { LoggedRequest } from '../time-travel/index.ts'
import type { Redaction } from '../session-export/index.ts'
import { ReplayError } from './errors.ts'
import { Portable } from './portable.ts'
import type { CanonicalRequest } from './portable.ts'
import type { RecordedRequest, Recording } from './recording.ts'
import { stretchesOf } from './stretches.ts'
import type { Stretch } from './stretches.ts'

export interface RecordOptions {
  /** The home folder of whoever ran the session. */
  readonly home?: string | undefined
  /** Takes secrets out. */
  readonly redaction?: Redaction
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
  for (const parts of rebuilt) {
    const index = requests.length
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
  { entered, chunks, results, replaced, permission, end }: Stretch,
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
    ...(replaced.length === 0 ? {} : { replaced: portable.out(replaced) }),
    answer: portable.out(mergeDeltas(chunks)),
    outcome: outcome.kind === 'open' ? (chunks.length === 0 ? 'silent' : 'cut') : outcome.kind,
    results: portable.out(results),
    ...(isOver ? { end: end?.kind === 'completed' ? 'concluded' : 'stopped' } : {}),
  }
}
