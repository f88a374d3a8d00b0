import { nearest } from '@dsh/harness/kernel'
import { usageError } from '../../errors.ts'
import { findSession } from '../../sessions.ts'
import { unbroken } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { withReader } from '../session/reader.ts'
import { ruleLine, withRules } from './rules.ts'

export const rm: CommandBody = async ({ values, words }, io) => {
  const { session } = values
  if (typeof session === 'string') {
    if (words.length > 0)
      throw usageError(
        'OPTION_CONFLICT',
        '--session takes no rules',
        `dsh permission rm --session ${session}`,
      )
    return await forget(session, io)
  }
  if (words.length === 0)
    throw usageError('MISSING_WORD', 'dsh permission rm needs RULE', 'dsh permission rm RULE')
  return await withRules(io, async file => {
    const ids = (await file.read()).rules.map(({ id }) => id)
    const unknown = words.find(word => !ids.includes(word))
    if (unknown !== undefined)
      throw usageError(
        'UNKNOWN_RULE',
        `there is no rule "${unknown}"${nearest(unknown, ids)}`,
        'dsh permission ls',
      )
    for (const { id, rule } of await file.remove(words)) io.err.line(`removed ${ruleLine(rule, id)}`)
    return 0
  })
}

/** Writes as whoever works on the session would: with the right to write its log. */
async function forget(word: string, io: Io): Promise<number> {
  return await withReader(io, async ({ sessions, ctx }) => {
    const { id } = await findSession(sessions, word)
    using preparation = await sessions.prepare(id)
    const { session, notices = [] } = preparation
    for (const notice of notices) io.err.line(unbroken(notice))
    const { length } = ctx.approval.grantsOf(session)
    await ctx.sessions.whileLive(session, () => ctx.approval.forget(session))
    io.err.line(
      length === 0 ? `nothing was allowed for session ${id}` : `forgot what was allowed for session ${id}`,
    )
    return 0
  })
}
