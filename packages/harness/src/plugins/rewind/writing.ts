import type { SessionId } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import type { Session } from '../../core/session/index.ts'
import { turnCursor } from '../../core/session/index.ts'
import { RewindError } from './errors.ts'

/** Gives `job` a session that nobody else can write: the live one between its turns, or the stored one. */
export async function withSource<T>(
  ctx: Context,
  id: SessionId,
  job: (session: Session) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const live = ctx.sessions.get(id)
  if (live !== undefined) {
    if (live.fold(turnCursor).openTurn !== undefined)
      throw new RewindError('REWIND_OPEN_TURN', `a turn of session "${id}" runs`)
    return await job(live)
  }
  using preparation = await ctx.sessionPersistence.prepare(id, signal)
  return await job(preparation.session)
}

/** Makes a session known while `job` adds to it, and durable. One that is live already stays so. */
export async function whileLive(
  ctx: Context,
  session: Session,
  job: (session: Session) => void,
): Promise<void> {
  if (ctx.sessions.get(session.id) === session) {
    job(session)
    await ctx.sessions.flush(session)
    return
  }
  const leave = ctx.sessions.enter(session)
  try {
    ctx.sessions.announce(session)
    job(session)
    await ctx.sessions.flush(session)
  } finally {
    leave()
  }
}
