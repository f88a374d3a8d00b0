import { cutText } from '../../core/tools/index.ts'
import type { EditPlan } from './edit.ts'
import { FsError } from './errors.ts'

const maxNumbers = 10
const maxShownLines = 12
const maxShownLength = 200

/** Why an edit was not made, with what the model needs to make a better one. */
export function editRefusal(plan: Exclude<EditPlan, { kind: 'replace' }>, displayPath: string): FsError {
  switch (plan.kind) {
    case 'ambiguous':
      return new FsError('FS_AMBIGUOUS_EDIT', ambiguous(plan.lines, displayPath))
    case 'applied':
      return new FsError(
        'FS_EDIT_NOT_FOUND',
        `nothing to do: new_string is already in ${displayPath} at line ${plan.line}`,
      )
    case 'missing':
      return new FsError('FS_EDIT_NOT_FOUND', missing(plan.near, displayPath))
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
