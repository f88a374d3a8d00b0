import type { SessionReader } from '@dsh/harness/presets/headless'
import type { SessionRow } from '@dsh/harness/session'
import { CliError, exitCode, usageError } from '../../errors.ts'
import { isConfirmed } from '../../person.ts'
import { findSession } from '../../sessions.ts'
import { oneLine } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'
import { withRoom } from './with-room.ts'

export const rm: CommandBody = ({ values, words }, io) =>
  withReader(io, async ({ ctx, sessions }) => {
    if (words.length === 0) throw usageError('MISSING_WORD', 'dsh session rm needs ID', 'dsh session rm ID')
    const rows: SessionRow[] = []
    for (const word of new Set(words)) rows.push(await findSession(sessions, word))
    if (values.yes !== true && !(await isConfirmed(await questionOf(rows, ctx), io)))
      throw new CliError('NOT_REMOVED', 'nothing was removed', {
        exitCode: exitCode.denied,
        fix: `dsh session rm ${words.join(' ')} --yes`,
      })
    for (const { id } of rows) {
      await withRoom(io.home, () => sessions.remove(id))
      io.err.line(`session ${id} is removed`)
    }
    return 0
  })

async function questionOf(
  rows: readonly SessionRow[],
  { sessionQuery }: SessionReader['ctx'],
): Promise<string> {
  const names = rows.map(async ({ id }) => {
    // A session that cannot be read can be removed all the same.
    const title = await sessionQuery.readTitle(id).catch(() => undefined)
    return title === undefined ? id : `${id} "${oneLine(title)}"`
  })
  return `? remove ${(await Promise.all(names)).join(', ')} for good`
}
