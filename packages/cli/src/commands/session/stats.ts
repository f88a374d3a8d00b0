import { messageOf } from '@dsh/harness/kernel'
import type { SessionStats } from '@dsh/harness/plugins/session-projections'
import type { TitleSnapshot } from '@dsh/harness/plugins/title'
import type { SessionReader } from '@dsh/harness/presets/headless'
import type { ReadableRow } from '@dsh/harness/session'
import { CliError } from '../../errors.ts'
import { findSession } from '../../sessions.ts'
import { sessionLines, totalLines } from '../../stats/text.ts'
import { Totals } from '../../stats/totals.ts'
import { inert } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import { withReader } from './reader.ts'

export const stats: CommandBody = ({ values, words: [word] }, io) =>
  withReader(io, async reader => {
    const json = values.json === true
    if (word === undefined) await tellAll(reader, io, { json })
    else await tellOne(reader, word, io, { json })
    return 0
  })

interface Known {
  readonly stats: SessionStats
  readonly title?: string | undefined
}

async function tellOne(
  reader: SessionReader,
  word: string,
  io: Io,
  { json }: { readonly json: boolean },
): Promise<void> {
  const row = await findSession(reader.sessions, word)
  const { id } = row
  if (!('header' in row))
    throw new CliError('SESSION_UNREADABLE', `session "${id}" cannot be read: ${row.problem}`, {
      fix: `${io.command} session verify ${id}`,
    })
  const { title, stats: counted } = await statsOf(reader, row)
  const { cwd } = row.header
  if (json) io.out.line(JSON.stringify({ id, title, cwd, ...counted }))
  else for (const line of sessionLines({ id, title, folder: cwd }, counted)) io.out.line(line)
}

/** One session after the other: only the sums are kept. */
async function tellAll(reader: SessionReader, io: Io, { json }: { readonly json: boolean }): Promise<void> {
  const rows = await reader.sessions.list()
  const totals = new Totals()
  const unreadable: string[] = []
  for (const row of rows) {
    try {
      if (!('header' in row)) throw new Error(row.problem)
      totals.add((await statsOf(reader, row)).stats, row.header.cwd ?? '(no folder)')
    } catch (error) {
      unreadable.push(row.id)
      io.err.line(inert(`note: session ${row.id} is left out: ${messageOf(error)}`))
    }
  }
  await reader.ctx.get('sessionProjectionCache')?.retain(rows.map(({ id }) => id))
  if (json) io.out.line(jsonOf(totals, unreadable))
  else for (const line of totalLines(totals)) io.out.line(line)
}

async function statsOf({ ctx }: SessionReader, row: ReadableRow): Promise<Known> {
  const { values, problems } = await ctx.sessionProjectionCache.coldSnapshot(row)
  const counted = values['sessionStats'] as unknown as SessionStats | undefined
  if (counted === undefined)
    throw new CliError('NO_STATS', problems?.['sessionStats'] ?? 'nobody counts what sessions take')
  const title = values['title'] as unknown as TitleSnapshot | null | undefined
  return { stats: counted, title: title?.title }
}

function jsonOf({ sessions, sum, days, models, folders }: Totals, unreadable: readonly string[]): string {
  return JSON.stringify({
    sessions,
    unreadable,
    total: sum,
    days: Object.fromEntries(days),
    models: Object.fromEntries(models),
    folders: Object.fromEntries(folders),
  })
}
