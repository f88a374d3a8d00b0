import { findSession } from '../../sessions.ts'
import { newSessionId } from '../../run/session-id.ts'
import { seqOf } from '../../time/places.ts'
import type { CommandBody } from '../../command.ts'
import { withRewind } from '../../rewind/with-rewind.ts'

export const fork: CommandBody = ({ words: [word = '', at] }, io) =>
  withRewind(io, async (rewind, ctx) => {
    const { id } = await findSession(ctx.sessionPersistence, word)
    const session = await ctx.sessionPersistence.view(id)
    const after =
      at === undefined ? session.length - 1 : seqOf(at, session, `${io.command} session fork ${id}`)
    const child = await rewind.fork(session, { after, childId: newSessionId() })
    io.out.line(child)
    io.err.line(`events 0 to ${after} of ${id}; go on with ${io.command} run -r ${child} "…"`)
    return 0
  })
