import { viewText } from '@dsh/harness/plugins/persistence'
import type { Session, SessionPersistence } from '@dsh/harness/session'
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
