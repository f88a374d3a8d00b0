import { cutText } from '../../core/tools/index.ts'
import { planEdit } from './edit.ts'
import type { EditPlan } from './edit.ts'
import { FsError } from './errors.ts'
import { lineAt, linesOf, splitLines } from './lines.ts'
import type { FsEditRequest } from './service.ts'

const maxNumbers = 10
const maxShownLines = 12
const maxShownLength = 200

/** Why an edit was not made, with what the model needs to make a better one. */
export function editRefusal(
  plan: Exclude<EditPlan, { kind: 'replace' }>,
  displayPath: string,
  { index, count }: { readonly index: number; readonly count: number },
): FsError {
  const code = plan.kind === 'ambiguous' ? 'FS_AMBIGUOUS_EDIT' : 'FS_EDIT_NOT_FOUND'
  const reason = reasonOf(plan, displayPath)
  if (count === 1) return new FsError(code, reason)
  const lines = index === 0 ? '' : '; lines count as after the edits before it'
  return new FsError(code, `edit ${index + 1} of ${count}: ${reason}\nnone of the edits was made${lines}`)
}

function reasonOf(plan: Exclude<EditPlan, { kind: 'replace' }>, displayPath: string): string {
  switch (plan.kind) {
    case 'ambiguous':
      return ambiguous(plan.lines, displayPath)
    case 'applied':
      return `nothing to do: new_string is already in ${displayPath} at line ${plan.line}`
    case 'missing':
      return missing(plan.near, displayPath)
  }
}

function ambiguous(lines: readonly number[], displayPath: string): string {
  const shown = lines.slice(0, maxNumbers).join(', ')
  const more = lines.length > maxNumbers ? ', …' : ''
  return (
    `old_string is found ${lines.length} times in ${displayPath}, at lines ${shown}${more}; ` +
    'add lines around it to make it unique, or set replace_all'
  )
}

function missing(near: Extract<EditPlan, { kind: 'missing' }>['near'], displayPath: string): string {
  const [best, ...others] = near
  if (best === undefined) return `old_string is not in ${displayPath}`
  const shown = best.lines
    .slice(0, maxShownLines)
    .map((line, index) => `${best.line + index}: ${cutText(line, maxShownLength)}`)
  const also = others.length === 0 ? '' : `\nalso similar: line ${others.map(place => place.line).join(', ')}`
  return `old_string is not in ${displayPath}; the nearest text is\n${shown.join('\n')}${also}`
}

const linesAround = 5
const maxPlaces = 3

/** The numbered lines of `text` around the places that edits meant, or its first ones. */
export function freshLines(text: string, requests: readonly FsEditRequest[]): string {
  const places = requests.slice(0, maxPlaces).map(request => linesAt(text, request))
  return [...new Set(places)].join('\n…\n')
}

function linesAt(text: string, request: FsEditRequest): string {
  const lines = splitLines(text)
  const center = placeOf(planEdit(text, request), text)
  const reach = splitLines(request.oldString).length + linesAround
  const from = Math.max(1, center - linesAround)
  return lines
    .slice(from - 1, Math.min(center + reach, from + 4 * linesAround) - 1)
    .map((line, index) => `${from + index}: ${cutText(line, maxShownLength)}`)
    .join('\n')
}

function placeOf(plan: EditPlan, text: string): number {
  switch (plan.kind) {
    case 'replace':
      return lineAt(linesOf(text), plan.splices[0]?.start ?? 0) + 1
    case 'ambiguous':
      return plan.lines[0] ?? 1
    case 'applied':
      return plan.line
    case 'missing':
      return plan.near[0]?.line ?? 1
  }
}
