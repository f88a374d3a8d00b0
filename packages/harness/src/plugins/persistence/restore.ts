import { sessionFormatVersion } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { interruptedTurnClosers } from '../../core/session/index.ts'
import type { Session, SessionStore, StoredGap, StoredSession } from '../../core/session/index.ts'
import { messageOf } from '../../kernel/index.ts'
import { newerFormatText, PersistenceError } from './errors.ts'
import type { StoredLog } from './medium.ts'

export interface Restored {
  readonly session: Session
  /** What ends the turn that the log breaks off in; part of the session, not yet of the log. */
  readonly closers: readonly SessionEvent[]
}

/** Makes the session of a log that may be continued. Throws where that is not so. */
export function restoreSession(log: StoredLog, sessions: SessionStore): Restored {
  const { header, events } = log
  const closers = closersOf(log, sessions)
  const session = prepare(log, [...events, ...closers], sessions)
  if (session.readOnly === undefined) return { session, closers }
  throw new PersistenceError('SESSION_READ_ONLY', `session "${header.id}" cannot go on: ${session.readOnly}`)
}

/** What can be shown of a log, whatever state it is in. */
export function viewOf(log: StoredLog, sessions: SessionStore): StoredSession {
  const { header, holder } = log
  const base = { header, ...(holder === undefined ? {} : { holder }) }
  if (header.version > sessionFormatVersion) {
    const readOnly = newerFormatText(header.version, log.path)
    return { ...base, events: log.events, readOnly, ...gapsOf(log.gaps) }
  }
  const checked = checkEvents(log, sessions)
  const { events, gaps } = checked
  const readOnly = refusalOf(log, gaps) ?? checked.readOnly
  // A log that somebody is writing is not broken off.
  const closers = holder === undefined ? closersOf({ ...log, events }, sessions) : []
  return {
    ...base,
    events: [...events, ...closers],
    ...(readOnly === undefined ? {} : { readOnly }),
    ...gapsOf(gaps),
  }
}

interface Checked {
  readonly events: readonly SessionEvent[]
  readonly gaps: readonly StoredGap[]
  readonly readOnly?: string | undefined
}

/** The events up to the first that is not right; the others stand behind a gap. */
function checkEvents(log: StoredLog, sessions: SessionStore): Checked {
  const { events, gaps } = log
  try {
    return { events, gaps, readOnly: prepareQuietly(log, events, sessions).readOnly }
  } catch (error) {
    const seq = seqOf(error)
    if (seq === undefined) throw error
    const reason = messageOf(error)
    const gap = { fromSeq: seq, toSeq: seq, bytes: 0, reason, events: events.slice(seq + 1) }
    const checked = checkEvents({ ...log, events: events.slice(0, seq), gaps: [] }, sessions)
    return { ...checked, gaps: [gap, ...gaps] }
  }
}

function refusalOf({ holder }: StoredLog, [gap]: readonly StoredGap[]): string | undefined {
  if (gap !== undefined) return `the log is damaged behind what is shown: ${gap.reason}`
  return holder === undefined ? undefined : heldText(holder)
}

function heldText({ pid, since }: { readonly pid: number; readonly since: number }): string {
  if (pid === 0) return 'it is open in another program, of which nothing is known'
  return `it is open in another program: process ${pid} since ${new Date(since).toISOString()}`
}

function gapsOf(gaps: readonly StoredGap[]): { readonly gaps?: readonly StoredGap[] } {
  return gaps.length === 0 ? {} : { gaps }
}

function closersOf(log: StoredLog, sessions: SessionStore): readonly SessionEvent[] {
  const { header, events, toolStart } = log
  const { seedLength } = header
  try {
    return interruptedTurnClosers(events, { toolStart, ...(seedLength === undefined ? {} : { seedLength }) })
  } catch (error) {
    // Events that are not right break it; then the check of the events says which.
    prepare(log, events, sessions)
    throw error
  }
}

function prepare(log: StoredLog, seed: readonly SessionEvent[], sessions: SessionStore): Session {
  const { header } = log
  try {
    return sessions.prepare(header.id, { seed, meta: header, seedSource: 'persistence' })
  } catch (cause) {
    const reason = messageOf(cause)
    throw new PersistenceError(
      'SESSION_DAMAGED',
      `session "${header.id}" is damaged: ${reason}: ${log.path}`,
      { cause, sessionId: header.id },
    )
  }
}

function prepareQuietly(log: StoredLog, seed: readonly SessionEvent[], sessions: SessionStore): Session {
  return sessions.prepare(log.header.id, { seed, meta: log.header, seedSource: 'persistence' })
}

function seqOf(error: unknown): number | undefined {
  const seq = (error as { seq?: unknown } | null)?.seq
  return typeof seq === 'number' ? seq : undefined
}
