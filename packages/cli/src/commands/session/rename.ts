import { usageError } from '../../errors.ts'
import { findSession } from '../../sessions.ts'
import { unbroken } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

const usage = 'dsh session rename ID TITLE'

/** Writes the title as whoever works on the session would: with the right to write its log, and refused where another has it. */
export const rename: CommandBody = ({ words: [word, ...title] }, io) =>
  withReader(io, async ({ sessions, ctx }) => {
    if (word === undefined) throw usageError('MISSING_WORD', `dsh session rename needs ID`, usage)
    if (title.length === 0) throw usageError('MISSING_WORD', `dsh session rename needs TITLE`, usage)
    const { id } = await findSession(sessions, word)
    const text = ctx.sessionTitle.check(title.join(' '))
    using preparation = await sessions.prepare(id)
    const { session, notices = [] } = preparation
    for (const notice of notices) io.err.line(unbroken(notice))
    await ctx.sessions.whileLive(session, () => ctx.sessionTitle.rename(session, text))
    io.err.line(`session ${id} is called ${unbroken(text)}`)
    return 0
  })
