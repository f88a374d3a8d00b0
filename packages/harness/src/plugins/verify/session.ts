import type { SessionId } from '@dsh/protocol'
import { inboxFold } from '../../core/agent/index.ts'
import { lintLog } from '../../core/invariants/index.ts'
import type {
  MediumProblem,
  MediumReport,
  Session,
  SessionPersistence,
  StoredSession,
} from '../../core/session/index.ts'
import { HarnessError, messageOf } from '../../kernel/index.ts'
import { problemsOfImages } from './images.ts'
import { problemsOfRequests } from './requests.ts'
import { problemsOfSurface } from './surface.ts'

/** What reads the stored sessions. */
export type VerifyStore = Pick<SessionPersistence, 'verify' | 'inspect' | 'viewOf'>

export interface SessionReport {
  readonly id: SessionId
  readonly ok: boolean
  readonly events: number
  /** 0 where the medium has none. */
  readonly frames: number
  /** Requests that were rebuilt from the log. */
  readonly requests: number
  /** Those of the stored bytes first, then, with codes of their own, those of what the events say. */
  readonly problems: readonly MediumProblem[]
  /** What is stored is not what was written, so that a repair may help. */
  readonly isDamaged?: true
  /** Bytes of an unfinished write at the end; no damage. */
  readonly tornBytes?: number
  /** Why nothing can be appended now, where that is no problem of the log. */
  readonly readOnly?: string
}

/**
 * Believes nothing: reads every byte, checks each event, their order and pairs, and makes what is made of them again.
 * A session that cannot be read has a problem that says so; rejects only where it is not stored.
 */
export async function verifySession(
  sessions: VerifyStore,
  id: SessionId,
  signal?: AbortSignal,
): Promise<SessionReport> {
  const problems: MediumProblem[] = []
  const stored = await attempt(() => sessions.verify(id, signal), problems)
  if (stored === undefined) return { id, ok: false, events: 0, frames: 0, requests: 0, problems }
  problems.push(...stored.problems)
  const above =
    stored.header === undefined ? undefined : await checkEvents(sessions, { id, stored, signal }, problems)
  const { events, frames, tornBytes } = stored
  const isDamaged = stored.problems.some(({ code }) => code !== 'HEADER_FOREIGN')
  return {
    id,
    ok: problems.length === 0,
    events,
    frames,
    requests: above?.requests ?? 0,
    problems: problems.map(problem => withFrame(problem, stored)),
    ...(isDamaged ? { isDamaged } : {}),
    ...(tornBytes === undefined ? {} : { tornBytes }),
    ...(above?.readOnly === undefined ? {} : { readOnly: above.readOnly }),
  }
}

/** What is wrong with an event is found in the frame that holds it. */
function withFrame(problem: MediumProblem, { frameStarts = [] }: MediumReport): MediumProblem {
  const { seq, frame } = problem
  if (seq === undefined || frame !== undefined) return problem
  const at = frameStarts.findLastIndex(start => start <= seq)
  return at === -1 ? problem : { ...problem, frame: at + 1 }
}

interface Work {
  readonly id: SessionId
  readonly stored: MediumReport
  readonly signal: AbortSignal | undefined
}

async function checkEvents(
  sessions: VerifyStore,
  { id, stored, signal }: Work,
  problems: MediumProblem[],
): Promise<{ readonly requests: number; readonly readOnly?: string } | undefined> {
  const isForeign = stored.problems.some(({ code }) => code === 'HEADER_FOREIGN')
  if (isForeign) return undefined
  const seen = await attempt(async () => {
    const found = await sessions.inspect(id, signal)
    return { refused: refusalsOf(found), session: sessions.viewOf(found) }
  }, problems)
  if (seen === undefined) return undefined
  const { refused, session } = seen
  problems.push(
    ...problemsOfEvents(refused, stored),
    ...problemsOfOrder(session),
    ...problemsOfInbox(session),
    ...problemsOfSurface(session),
  )
  const rebuilt = problemsOfRequests(session)
  problems.push(...rebuilt.problems, ...(await problemsOfImages(session)))
  const { readOnly } = refused
  return { requests: rebuilt.count, ...(readOnly === undefined || problems.length > 0 ? {} : { readOnly }) }
}

type Refusals = Pick<StoredSession, 'readOnly' | 'gaps'>

/** All but the events, which are many. */
function refusalsOf({ readOnly, gaps = [] }: StoredSession): Refusals {
  return {
    ...(readOnly === undefined ? {} : { readOnly }),
    gaps: gaps.map(gap => ({ ...gap, events: [] })),
  }
}

/** What the store refuses of events whose bytes are sound. */
function problemsOfEvents({ gaps = [] }: Refusals, { problems }: MediumReport): readonly MediumProblem[] {
  const known = new Set(problems.map(({ message }) => message))
  return gaps
    .filter(({ reason }) => !known.has(reason))
    .map(({ fromSeq, reason }) => ({ code: 'EVENT_INVALID', message: reason, seq: fromSeq }))
}

function problemsOfOrder(session: Session): readonly MediumProblem[] {
  return lintLog(session.since(0)).map(({ check, seq, type, message }) => ({
    code: 'ORDER_BROKEN',
    message: `event ${seq} ("${type}"): ${message} (${check})`,
    seq,
  }))
}

function problemsOfInbox(session: Session): readonly MediumProblem[] {
  const { misfit } = session.fold(inboxFold)
  return misfit === undefined ? [] : [{ code: 'INBOX_BROKEN', ...misfit }]
}

/** What went wrong becomes a problem; what is not stored, and a mistake of ours, are none. */
async function attempt<T>(job: () => Promise<T>, problems: MediumProblem[]): Promise<T | undefined> {
  try {
    return await job()
  } catch (error) {
    if (!(error instanceof HarnessError) || error.code === 'SESSION_NOT_FOUND') throw error
    problems.push({ code: error.code, message: messageOf(error) })
    return undefined
  }
}
