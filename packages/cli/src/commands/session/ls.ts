import { homedir } from 'node:os'
import type { SessionRow } from '@dsh/harness/session'
import { unbroken } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const ls: CommandBody = ({ values }, io) =>
  withReader(io, async ({ sessions }) => {
    const rows = [...(await sessions.list())].toSorted((a, b) => timeOf(b) - timeOf(a))
    if (rows.length === 0) io.err.line(`no sessions in ${io.home} yet`)
    const format = values.json === true ? jsonRow : humanRow
    for (const row of rows) io.out.line(format(row))
    return 0
  })

/** A row that cannot be read has no time; it stands last. */
function timeOf(row: SessionRow): number {
  return 'header' in row ? row.updatedAt : 0
}

function jsonRow(row: SessionRow): string {
  if (!('header' in row)) return JSON.stringify(row)
  const { id, header, updatedAt, path } = row
  const { createdAt, cwd, parentSession, origin } = header
  return JSON.stringify({
    id,
    createdAt,
    updatedAt: Math.round(updatedAt),
    cwd,
    parentSession,
    origin,
    path,
  })
}

function humanRow(row: SessionRow): string {
  if (!('header' in row)) return unbroken(`${row.id}  unreadable: ${row.problem}`)
  const { cwd = '' } = row.header
  const below = cwd.startsWith(`${homedir()}/`) ? `~${cwd.slice(homedir().length)}` : cwd
  return unbroken(`${row.id}  ${localTime(row.updatedAt)}  ${below}`)
}

/** `2026-11-30 14:05`, in the zone of the machine. */
function localTime(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000)
  return date.toISOString().slice(0, 16).replace('T', ' ')
}
