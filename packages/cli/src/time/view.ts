import { viewText } from '@dsh/harness/plugins/persistence'
import type {} from '@dsh/harness/plugins/rewind'
import type { ReadableRow, Session, SessionPersistence } from '@dsh/harness/session'
import type { SessionReader } from '@dsh/harness/presets/headless'
import type { SessionEvent } from '@dsh/protocol'
import { tellState } from '../commands/session/reader.ts'
import { findSession } from '../sessions.ts'
import { inert } from '../text.ts'
import type { Io } from '../io.ts'

/** The session whose id is `word` or begins with it, to look at. Says where it is damaged, or somebody writes it. */
export async function viewSession(sessions: SessionPersistence, word: string, io: Io): Promise<Session> {
  const { id } = await findSession(sessions, word)
  const session = await sessions.view(id)
  const { readOnly = viewText } = session
  if (readOnly !== viewText) io.err.line(`the session is read-only: ${inert(readOnly)}`)
  return session
}

/**
 * The same with no event behind `seq` but the restore points that tell of files until then, which follow at once: what
 * it takes to look at a moment, however long the log is. All of the session where `seq` is none of its stored events.
 */
export async function viewAsOf(
  { sessions, ctx }: Pick<SessionReader, 'sessions' | 'ctx'>,
  word: string,
  { seq, io }: { readonly seq: number; readonly io: Io },
): Promise<Session> {
  const row = await findSession(sessions, word)
  const seed = 'header' in row && Number.isSafeInteger(seq) ? await eventsAsOf(sessions, row, seq) : undefined
  if (!('header' in row) || seed === undefined) return viewSession(sessions, row.id, io)
  const { header, holder } = row
  tellState({ header, events: [], ...(holder === undefined ? {} : { holder }) }, io.err)
  return ctx.sessions.prepare(row.id, { seed, meta: header, seedSource: 'persistence', readOnly: viewText })
}

/** Undefined where the log has no such event in front of any damage. */
async function eventsAsOf(
  sessions: SessionPersistence,
  { id }: ReadableRow,
  seq: number,
): Promise<readonly SessionEvent[] | undefined> {
  const events: SessionEvent[] = []
  for await (const { gap, events: found } of sessions.stream(id)) {
    if (gap !== undefined) break
    events.push(...found.filter(event => event.seq <= seq))
    const points = found.filter(event => event.seq > seq).filter(event => event.type === 'restore/point')
    const late = points.findIndex(({ data }) => data.after > seq)
    for (const point of points.slice(0, late === -1 ? undefined : late))
      events.push({ ...point, seq: events.length })
    // They stand in the log in the order of the moments they tell of.
    if (late !== -1) break
  }
  return events.length > seq ? events : undefined
}
