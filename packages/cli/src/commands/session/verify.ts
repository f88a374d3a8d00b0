import { HarnessError } from '@dsh/harness/kernel'
import { verifySession } from '@dsh/harness/plugins/verify'
import type { SessionReport } from '@dsh/harness/plugins/verify'
import type { SessionId } from '@dsh/protocol'
import type { SessionPersistence } from '@dsh/harness/session'
import { exitCode, usageError } from '../../errors.ts'
import { findSession } from '../../sessions.ts'
import { inert } from '../../text.ts'
import { reportLines } from '../../verify/text.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const verify: CommandBody = ({ values, words: [word] }, io) =>
  withReader(io, async ({ sessions }) => {
    const { all, json } = values
    if ((all === true) === (word !== undefined))
      throw usageError('MISSING_WORD', 'dsh session verify needs ID or --all', 'dsh session verify --all')
    let isSound = true
    for (const id of word === undefined
      ? await everyId(sessions)
      : [(await findSession(sessions, word)).id]) {
      const report = await check(sessions, id)
      isSound &&= report.ok
      if (json === true) io.out.line(JSON.stringify(report))
      else for (const line of reportLines(report)) io.out.line(inert(line))
      await io.out.flush()
      if (io.out.failure !== undefined) break
    }
    return isSound ? 0 : exitCode.failed
  })

/** Two folders with one id are one id, which is then refused with both named. */
async function everyId(sessions: SessionPersistence): Promise<readonly SessionId[]> {
  const rows = await sessions.list()
  return [...new Set(rows.map(({ id }) => id))].toSorted()
}

/** Whatever is wrong with one session, the next is looked at. */
async function check(sessions: SessionPersistence, id: SessionId): Promise<SessionReport> {
  try {
    return await verifySession(sessions, id)
  } catch (error) {
    const code = error instanceof HarnessError ? error.code : 'UNREADABLE'
    const problems = [{ code, message: error instanceof Error ? error.message : String(error) }]
    return { id, ok: false, events: 0, frames: 0, requests: 0, problems }
  }
}
