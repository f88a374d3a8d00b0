import { inColumns } from '../../columns.ts'
import { countOption } from '../../count-option.ts'
import { localTime, shortFolder } from '../../place-and-time.ts'
import { workFolder } from '../../run/folder.ts'
import { inert, unbroken } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import type { Io } from '../../io.ts'
import type { SessionOverview, SessionOverviews, SessionQuery } from '@dsh/harness/plugins/session-query'
import type { UnreadableRow } from '@dsh/harness/session'
import { withReader } from './reader.ts'

type Row = SessionOverview | UnreadableRow

const usualRows = 20
const titleColumns = 44

export const ls: CommandBody = ({ values }, io) =>
  withReader(io, async ({ ctx }) => {
    const asked = countOption('limit', values.limit, 'dsh session ls --limit 50')
    const isWhole = values.all === true || (values.json === true && asked === undefined)
    const limit = asked ?? (isWhole ? undefined : usualRows)
    const where = values.here === true ? { cwd: await workFolder(io.cwd, undefined) } : {}
    const page = await ctx.sessionQuery.overview({
      ...(limit === undefined ? {} : { limit }),
      ...where,
      withArchived: values.archived === true,
    })
    const format = values.json === true ? jsonRow : humanRow
    for (const row of page.rows) io.out.line(format(row))
    if (page.total === 0) io.err.line(await emptyText(ctx.sessionQuery, where, io))
    tellRest(page, io, { isJson: values.json === true })
    return 0
  })

/** Why there is no row, and what would give one. */
async function emptyText(
  query: SessionQuery,
  where: { readonly cwd?: string },
  { home }: Io,
): Promise<string> {
  const place = where.cwd === undefined ? home : unbroken(where.cwd)
  const { total } = await query.overview({ limit: 1, ...where, withArchived: true })
  if (total > 0) return `no sessions in ${place} but archived ones: dsh session ls --archived`
  return where.cwd === undefined
    ? `no sessions in ${place} yet`
    : `no sessions of ${place}; of all folders: dsh session ls`
}

/** Beside the rows, so that whoever counts them counts sessions. */
function tellRest(
  { rows, total, indexProblem }: SessionOverviews,
  io: Io,
  { isJson }: { readonly isJson: boolean },
): void {
  if (rows.length < total && !isJson) io.err.line(`${rows.length} of ${total}; all: dsh session ls --all`)
  if (indexProblem !== undefined) io.err.line(`the index cannot be used: ${inert(indexProblem)}`)
}

function jsonRow(row: Row): string {
  if (!('header' in row)) return JSON.stringify(row)
  const { id, header, updatedAt, path, bytes, holder, isPartial, summary } = row
  const { createdAt, cwd, parentSession, origin } = header
  const { title, isTitled, firstPrompt, lastPromptAt, turns, model, archived } = summary ?? {}
  return JSON.stringify({
    id,
    createdAt,
    updatedAt: Math.round(updatedAt),
    cwd,
    parentSession,
    origin,
    path,
    bytes,
    title,
    titled: isTitled,
    firstPrompt,
    lastPromptAt,
    turns,
    model,
    archived,
    holder: holder === undefined ? undefined : { pid: holder.pid, since: holder.since },
    partial: isPartial ? true : undefined,
  })
}

function humanRow(row: Row): string {
  if (!('header' in row)) return unbroken(`${row.id}  unreadable: ${row.problem}`)
  const { cwd = '' } = row.header
  const title = inColumns(unbroken(row.summary?.title ?? ''), titleColumns)
  const parts = [row.id, localTime(row.updatedAt), turnsOf(row), title, shortFolder(cwd), ...marksOf(row)]
  return unbroken(parts.join('  ')).trimEnd()
}

/** `3+` where there are at least 3. */
function turnsOf({ summary, isPartial }: SessionOverview): string {
  const count = summary === undefined ? '' : `${summary.turns}${isPartial ? '+' : ''}`
  return `${count.padStart(4)} ${summary?.turns === 1 && !isPartial ? 'turn ' : 'turns'}`
}

function marksOf({ header: { origin, parentSession }, summary, holder }: SessionOverview): string[] {
  const branch = parentSession === undefined ? undefined : `fork of ${parentSession}`
  const kind = origin ?? branch
  return [
    ...(kind === undefined ? [] : [`[${kind}]`]),
    ...(summary?.archived === true ? ['[archived]'] : []),
    ...(holder === undefined ? [] : [holder.pid === 0 ? '[open]' : `[open in process ${holder.pid}]`]),
  ]
}
