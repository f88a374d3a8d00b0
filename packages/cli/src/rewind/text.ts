import type { PreviewFile, RewindPreview, RewindResult, RewindRow } from '@dsh/harness/plugins/rewind'
import type { Session } from '@dsh/harness/session'
import { columnsOf, inColumns } from '../columns.ts'
import { Transcript } from '../transcript.ts'
import { oneLine, unbroken } from '../text.ts'

/** A line for each thing that can be taken back: event, kind, what it was, files and lines. */
export function rowLines(rows: readonly RewindRow[], session: Session): string {
  const transcript = new Transcript(session.header.cwd)
  const firstWithFiles = rows.findIndex(({ point }) => point !== undefined)
  const withoutFiles = firstWithFiles < 0 ? rows.length : firstWithFiles
  const cells = rows.map((row, at) => ({
    ...cellsOf(row, transcript),
    // Nothing is known of the files of then: no point is as old.
    ...(at < withoutFiles ? { files: '', left: '  conversation only' } : {}),
  }))
  const widest = (key: keyof Cells): number => Math.max(...cells.map(cell => columnsOf(cell[key])))
  const [kind, text, files] = [widest('kind'), Math.min(widest('text'), longestText), widest('files')]
  const seq = widest('seq')
  return cells
    .map(cell => {
      const start = `${cell.seq.padStart(seq)}  ${inColumns(cell.kind, kind)}  ${inColumns(cell.text, text)}`
      return `${`${start}  ${cell.files.padStart(files)}  ${cell.lines}`.trimEnd()}${cell.left}\n`
    })
    .join('')
}

interface Cells {
  readonly seq: string
  readonly kind: string
  readonly text: string
  readonly files: string
  readonly lines: string
  readonly left: string
}

/** In columns. */
const longestText = 60

function cellsOf(row: RewindRow, transcript: Transcript): Cells {
  const { seq, kind, files, insertions, deletions } = row
  return {
    seq: `#${seq}`,
    kind: kind === 'tool' ? oneLine(row.text) : kind,
    text: kind === 'user' ? `"${oneLine(row.text)}"` : subjectOf(row, transcript),
    files: countOf(files),
    lines: files === 0 || kind === 'rewind' ? '' : `+${insertions} -${deletions}`,
    left: leftOut(row),
  }
}

function subjectOf({ arguments: args }: RewindRow, transcript: Transcript): string {
  try {
    return oneLine(transcript.subjectOf(JSON.parse(args ?? '')))
  } catch {
    return ''
  }
}

/** What a point does not hold, so that nobody relies on it. */
function leftOut({ point }: RewindRow): string {
  const { tooLarge = [], unreadable = [], special = [], more = 0 } = point?.skipped ?? {}
  const count = tooLarge.length + unreadable.length + special.length + more
  return count === 0 ? '' : `  (${countOf(count)} left out)`
}

function countOf(count: number): string {
  return count === 1 ? '1 file' : `${count} files`
}

const signs: Readonly<Record<PreviewFile['status'], string>> = {
  restore: 'restore ',
  recreate: 'recreate',
  delete: 'delete  ',
  conflict: '! keep  ',
  unknown: '! keep  ',
}

const reasons = {
  'changed-by-user': 'changed by you since',
  'not-in-point': 'not in the restore point',
  'in-the-way': 'something else is there',
  failed: 'could not be written',
} as const

/** What would be done, a line for each file. */
export function previewLines({ scope, to, files }: RewindPreview, id: string): string {
  const lines = files.map(file => {
    const { insertions, deletions, reason } = file
    const count = insertions === undefined ? '' : `  +${insertions} -${deletions}`
    const why = reason === undefined ? count : `  ${reasons[reason]}`
    return `${signs[file.status]}  ${unbroken(file.path)}${why}`
  })
  if (scope !== 'conversation' && files.length === 0) lines.push('the files are as they were')
  if (scope !== 'files')
    lines.push(
      to.session === id
        ? `the conversation goes on in a new session, with the events up to ${to.seq}`
        : `the conversation goes on in session ${to.session}`,
    )
  return lines.map(line => `${line}\n`).join('')
}

export function questionOf({ scope, files }: RewindPreview): string {
  const count = files.filter(({ status }) => status !== 'conflict' && status !== 'unknown').length
  const parts = [
    ...(scope === 'conversation' || (scope === 'both' && count === 0) ? [] : [countOf(count)]),
    ...(scope === 'files' ? [] : ['the conversation']),
  ]
  return `? take ${parts.join(' and ')} back`
}

/** What was done, and how to go on. */
export function resultLines(
  { session, scope, files, kept }: RewindResult,
  id: string,
  command: string,
): string {
  const lines = scope === 'conversation' ? [] : [`${countOf(files.length)} taken back, ${kept.length} kept`]
  for (const { path, reason } of kept.filter(
    each => each.reason === 'failed' || each.reason === 'in-the-way',
  ))
    lines.push(`! kept  ${unbroken(path)}  ${reasons[reason]}`)
  lines.push(`go on:  ${command} run -r ${session} "…"`, `undo:   ${command} rewind ${session} --undo`)
  if (session !== id) lines.unshift(`session ${session}`)
  return lines.map(line => `${line}\n`).join('')
}
