import type { SessionEvent } from '@dsh/protocol'
import { findSession } from '../../sessions.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const archive: CommandBody = ({ values, words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const { id } = await findSession(sessions, word)
    const archived = values.undo !== true
    const { events } = await sessions.readFrom(id, 0)
    const event = {
      type: 'session/archived',
      seq: events.length,
      time: Date.now(),
      data: { archived },
      ignorable: true,
    } satisfies SessionEvent
    await sessions.append(id, [event])
    io.err.line(`session ${id} ${archived ? 'is left out of lists' : 'is back in lists'}`)
    return 0
  })
