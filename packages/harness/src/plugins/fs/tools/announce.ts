import { turnCursor } from '../../../core/session/index.ts'
import type { ToolRunContext } from '../../../core/tools/index.ts'
import { isFields } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type {} from '../events.ts'
import type { ConfirmChange, FsTarget } from '../service.ts'

/** Lets logs hold what is announced. */
export function declareChanges(ctx: Context): void {
  ctx.get('sessions')?.registerEventType({
    type: 'fs/change',
    ignorable: true,
    validate(data) {
      const { callId, path, before, after } = isFields(data) ? data : {}
      const isRight = [callId, path, after].every(text => typeof text === 'string')
      if (!isRight || (before !== null && typeof before !== 'string'))
        throw new TypeError('callId, path and after are texts, before is one or null')
    },
  })
}

/** Makes the log say, durably, what a call will make of a file right before it does. Without a session nothing is said. */
export function announcer(ctx: Context, target: FsTarget, exec: ToolRunContext): ConfirmChange {
  return async hashes => {
    const session = exec.agent?.session
    const sessions = ctx.get('sessions')
    if (session?.fold(turnCursor).openTurn === undefined || sessions?.get(session.id) !== session) return
    session.append('fs/change', { callId: exec.callId, path: target.displayPath, ...hashes })
    await sessions.flush(session)
  }
}
