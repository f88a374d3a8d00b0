import { toJsonText } from '@dsh/harness/kernel'
import type { JsonValue } from '@dsh/protocol'
import { findSession } from '../../sessions.ts'
import type { CommandBody } from '../../command.ts'
import { tellState, withReader } from './reader.ts'

export const cat: CommandBody = ({ words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const { id } = await findSession(sessions, word)
    // Without the events it is what must be known beside them.
    tellState(await sessions.readFrom(id, Number.MAX_SAFE_INTEGER), io.err)
    for await (const { gap, events } of sessions.stream(id, { isUnchecked: true })) {
      if (gap !== undefined) break
      for (const event of events) io.out.line(toJsonText(event as unknown as JsonValue))
      await io.out.flush()
      if (io.out.failure !== undefined) break
    }
    return 0
  })
