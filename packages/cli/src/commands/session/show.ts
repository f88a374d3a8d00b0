import { linesOf } from '../../lines.ts'
import { findSession } from '../../sessions.ts'
import { Transcript } from '../../transcript.ts'
import type { CommandBody } from '../../command.ts'
import { tellState, withReader } from './reader.ts'

export const show: CommandBody = ({ words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const { id } = await findSession(sessions, word)
    const stored = await sessions.inspect(id)
    tellState(stored, io.err)
    const transcript = new Transcript(stored.header.cwd)
    const style = { color: io.out.isTerminal && io.env.NO_COLOR === undefined }
    for (const event of stored.events) {
      const entry = transcript.next(event)
      if (entry !== undefined) io.out.write(linesOf(entry, style))
    }
    return 0
  })
