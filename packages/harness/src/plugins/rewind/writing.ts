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
