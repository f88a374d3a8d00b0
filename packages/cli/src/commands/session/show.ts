import { linesOf } from '../../lines.ts'
import { Stop } from '../../run/signals.ts'
import { findSession } from '../../sessions.ts'
import { styleOf } from '../../style.ts'
import { Transcript } from '../../transcript.ts'
import type { ReadableRow, SessionPersistence } from '@dsh/harness/session'
import type { SessionEvent } from '@dsh/protocol'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { tellState, withReader } from './reader.ts'

export const show: CommandBody = ({ values, words: [word = ''] }, io) =>
  withReader(io, async ({ sessions }) => {
    const row = await findSession(sessions, word)
    if (values.follow === true && 'header' in row) return follow(row, sessions, io)
    const stored = await sessions.inspect(row.id)
    tellState(stored, io.err)
    const print = printerFor(stored.header.cwd, io)
    for (const [at, event] of stored.events.entries()) {
      print(event)
      if (at % eventsAtOnce === 0) await io.out.flush()
      if (io.out.failure !== undefined) break
    }
    return 0
  })

/** What waits to be written is a part of a long session, not all of it. */
const eventsAtOnce = 100

const closedText = 'nobody has the session open, so nothing more will come'

/** Prints what happens as it happens, until a signal comes or nobody works on the session any more. */
async function follow({ id, header }: ReadableRow, sessions: SessionPersistence, io: Io): Promise<number> {
  const stop = new Stop(io)
  const leaving = new AbortController()
  io.out.onFailure(() => leaving.abort())
  const print = printerFor(header.cwd, io)
  try {
    const signal = AbortSignal.any([stop.signal, leaving.signal])
    for await (const event of sessions.follow(id, { whileOpen: true, signal })) print(event)
    if (!signal.aborted) io.err.line(closedText)
    return stop.exitCode ?? 0
  } finally {
    stop.forget()
  }
}

function printerFor(cwd: string | undefined, io: Io): (event: SessionEvent) => void {
  const transcript = new Transcript(cwd)
  const style = styleOf('out', io)
  return event => {
    const entry = transcript.next(event)
    if (entry !== undefined) io.out.write(linesOf(entry, style))
  }
}
