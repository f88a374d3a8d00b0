import { toJsonText } from '@dsh/harness/kernel'
import type { JsonValue } from '@dsh/protocol'
import { findSession } from '../../sessions.ts'
import type { CommandBody } from '../../command.ts'
import { tellState, withReader } from './reader.ts'

const eventsAtOnce = 500

export const cat: CommandBody = ({ words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const { id } = await findSession(sessions, word)
    const stored = await sessions.readFrom(id, 0)
    tellState(stored, io.err)
    for (const [at, event] of stored.events.entries()) {
      io.out.line(toJsonText(event as unknown as JsonValue))
      if (at % eventsAtOnce === 0) await io.out.flush()
      if (io.out.failure !== undefined) break
    }
    return 0
  })
