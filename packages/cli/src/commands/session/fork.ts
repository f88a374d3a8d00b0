import { findSession } from '../../sessions.ts'
import { newSessionId } from '../../run/session-id.ts'
import { usageError } from '../../errors.ts'
import { unbroken } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import { withRewind } from '../with-rewind.ts'

export const fork: CommandBody = ({ words: [word = '', at] }, io) =>
  withRewind(io, async (rewind, ctx) => {
    const { id } = await findSession(ctx.sessionPersistence, word)
    const session = await ctx.sessionPersistence.view(id)
    const after = at === undefined ? session.length - 1 : Number(at.replace(/^#/, ''))
    if (session.at(after) === undefined)
      throw usageError(
        'UNKNOWN_EVENT',
        `session ${id} has no event "${unbroken(at ?? '')}"; its last is ${session.length - 1}`,
        `${io.command} session cat ${id}`,
      )
    const child = await rewind.fork(session, { after, childId: newSessionId() })
    io.out.line(child)
    io.err.line(`events 0 to ${after} of ${id}; go on with ${io.command} run -r ${child} "…"`)
    return 0
  })
