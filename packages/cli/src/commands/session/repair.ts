import { findSession } from '../../sessions.ts'
import { repairLines } from '../../verify/text.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const repair: CommandBody = ({ words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const { id } = await findSession(sessions, word)
    for (const line of repairLines(id, await sessions.repair(id))) io.out.line(line)
    return 0
  })
