import type { SessionReport } from '@dsh/harness/plugins/verify'
import type { MediumProblem } from '@dsh/harness/session'
import type { LostEvents, RepairResult } from '@dsh/harness/session'
import { counted, unbroken } from '../text.ts'

/** What was found in one session: a line of counts, then one for each problem. */
export function reportLines(report: SessionReport): readonly string[] {
  const { id, ok, events, frames, requests, problems, tornBytes, readOnly } = report
  const counts = [
    ok ? 'chain ok' : counted(problems.length, 'problem'),
    counted(events, 'event'),
    ...(frames === 0 ? [] : [counted(frames, 'frame')]),
    `${counted(requests, 'request')} rebuilt`,
  ]
  const lines = [`${id}  ${counts.join(' · ')}`, ...problems.map(problem => `  ${problemText(problem)}`)]
  if (tornBytes !== undefined)
    lines.push(
      `  ${counted(tornBytes, 'byte')} of an unfinished write at the end: no damage, the next run puts them aside`,
    )
  if (readOnly !== undefined) lines.push(`  read-only: ${readOnly}`)
  const wayOut = wayOutOf(report)
  if (wayOut !== undefined) lines.push(`  ${wayOut}`)
  return lines.map(unbroken)
}

/** What helps; undefined where nothing is needed, or nothing is known that does. */
function wayOutOf({ id, frames, problems, isDamaged }: SessionReport): string | undefined {
  if (frames === 0 && problems.some(({ code }) => code === 'HEADER_DAMAGED'))
    return `dsh session repair ${id} mends a header with one flipped bit; where that fails, dsh session rm ${id} removes the log`
  if (isDamaged === true)
    return `dsh session repair ${id} puts what is sound in its place and keeps the old log`
  const wrong = problems.find(({ code }) => code === 'EVENT_INVALID')?.seq
  if (wrong === undefined || wrong === 0) return undefined
  return `dsh session fork ${id} ${wrong - 1} makes a session of the events before event ${wrong}`
}

function problemText({ code, message, frame, seq, offset }: MediumProblem): string {
  const places = [
    ...(frame === undefined ? [] : [`frame ${frame}`]),
    ...(seq === undefined ? [] : [`event ${seq}`]),
    ...(offset === undefined ? [] : [`byte ${offset}`]),
  ]
  return `${code}${places.length === 0 ? '' : ` at ${places.join(', ')}`}: ${message}`
}

/** What became of a log that was repaired. */
export function repairLines(
  id: string,
  { kept, events, mended, lost = [], branches }: RepairResult,
): readonly string[] {
  if (kept === undefined) return [`session ${id} needs no repair: ${counted(events, 'event')}`]
  const lines = [
    `session ${id} is repaired: ${counted(events, 'event')}`,
    `the old log is ${kept}`,
    ...(mended === undefined ? [] : [`${counted(mended, 'flipped bit')} put right`]),
    ...lost.map(lossText),
    ...branches.map(
      ({ header, events: count }) =>
        `another program wrote behind event ${(header.seedLength ?? 0) - 1}: session ${header.id}, ${counted(count, 'event')}`,
    ),
  ]
  return lines.map(unbroken)
}

function lossText({ fromSeq, toSeq, reason, isReadable }: LostEvents): string {
  const isOne = fromSeq === toSeq
  const events = isOne ? `event ${fromSeq}` : `events ${fromSeq} to ${toSeq}`
  if (isReadable !== true) return `${events} ${isOne ? 'is' : 'are'} lost: ${reason}`
  return `${events} ${isOne ? 'is' : 'are'} in the old log alone, since no session can begin there`
}
