import type { SessionPersistence } from '@dsh/harness/session'
import type { SessionEvent, SessionId } from '@dsh/protocol'
import { findSession } from '../../sessions.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const archive: CommandBody = ({ values, words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const { id } = await findSession(sessions, word)
    const archived = values.undo !== true
    const event = {
      type: 'session/archived',
      seq: await nextSeqOf(id, sessions),
      time: Date.now(),
      data: { archived },
      ignorable: true,
    } satisfies SessionEvent
    await sessions.append(id, [event])
    io.err.line(`session ${id} ${archived ? 'is left out of lists' : 'is back in lists'}`)
    return 0
  })

/** Of a damaged log, that of its sound part; no more is appended to it anyway. */
async function nextSeqOf(id: SessionId, sessions: SessionPersistence): Promise<number> {
  let next = 0
  for await (const { events, gap } of sessions.stream(id)) {
    if (gap !== undefined) break
    next = (events.at(-1)?.seq ?? next - 1) + 1
  }
  return next
}
