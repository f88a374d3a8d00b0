import { verifySession } from '@dsh/harness/plugins/verify'
import type { MediumProblem, SessionPersistence, ReadableRow } from '@dsh/harness/session'
import { reportOf } from '../report-error.ts'
import { counted } from '../text.ts'
import { quoted } from '../errors.ts'
import { note, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** How long the bytes of the newest logs are looked at, and how much of one; what a crash leaves is there. */
const budgetMs = 120
const smallBytes = 300_000

export interface LooksAtLogs {
  readonly checked: number
  readonly faults: Findings
}

/** With `isDeep` each log, up to its requests; else the bytes of some, the newest first. */
export async function lookAtLogs(
  sessions: SessionPersistence,
  rows: readonly ReadableRow[],
  place: Place,
): Promise<LooksAtLogs> {
  const deadline = performance.now() + budgetMs
  const faults: Findings[number][] = []
  let checked = 0
  for (const row of rows.toSorted((a, b) => b.updatedAt - a.updatedAt)) {
    if (!place.isDeep && ((row.bytes ?? 0) > smallBytes || performance.now() > deadline)) continue
    faults.push(...(await lookAtLog(sessions, row, place)))
    checked += 1
  }
  return { checked, faults }
}

interface Report {
  readonly problems: readonly MediumProblem[]
  readonly tornBytes?: number
}

async function lookAtLog(
  sessions: SessionPersistence,
  { id, holder }: ReadableRow,
  { isDeep, command }: Place,
): Promise<Findings> {
  const verify = `${command} session verify ${quoted(id)}`
  try {
    const report: Report = await (isDeep ? verifySession(sessions, id) : sessions.verify(id))
    const [first] = report.problems
    if (first !== undefined) return [problem(first.code, `${id}: ${textOf(first, report)}`, verify)]
    // A program that is writing has not ended yet.
    if (report.tornBytes === undefined || holder !== undefined) return []
    const torn = counted(report.tornBytes, 'byte')
    return [
      note('SESSION_TORN', `${id} ends with ${torn} of an unfinished write; the next run puts them aside`),
    ]
  } catch (error) {
    const { code, message } = reportOf(error)
    return [problem(code, `${id}: ${message}`, verify)]
  }
}

function textOf({ message }: MediumProblem, { problems }: Report): string {
  return problems.length === 1 ? message : `${counted(problems.length, 'problem')}, the first: ${message}`
}
