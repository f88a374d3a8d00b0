import { jsonEquals } from '@dsh/harness/kernel'
import type { JsonValue } from '@dsh/protocol'
import { counted, oneLine, unbroken } from '../text.ts'
import { changedBetween } from './files-then.ts'
import type { ChangedFile } from './files-then.ts'
import type { ShownMoment } from './moment-text.ts'

export interface MomentsCompared {
  readonly from: number
  readonly to: number
  /** Undefined where the files of one of the moments are not known. */
  readonly files: readonly ChangedFile[] | undefined
  readonly missing?: string
  readonly messages: { readonly before: number; readonly after: number; readonly shared: number }
  readonly projections: Readonly<Record<string, { readonly before?: JsonValue; readonly after?: JsonValue }>>
}

export function compareMoments(before: ShownMoment, after: ShownMoment): MomentsCompared {
  const [old, now] = [before.moment.history.seqs, after.moment.history.seqs]
  let shared = 0
  while (shared < old.length && old[shared] === now[shared]) shared++
  const [was, is] = [before.files, after.files]
  const missing = 'missing' in was ? was.missing : 'missing' in is ? is.missing : undefined
  return {
    from: before.moment.event.seq,
    to: after.moment.event.seq,
    files: 'missing' in was || 'missing' in is ? undefined : changedBetween(was.list, is.list),
    ...(missing === undefined ? {} : { missing }),
    messages: { before: old.length, after: now.length, shared },
    projections: changedValues(before.values ?? {}, after.values ?? {}),
  }
}

function changedValues(
  before: Readonly<Record<string, JsonValue>>,
  after: Readonly<Record<string, JsonValue>>,
): MomentsCompared['projections'] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = keys.filter(key => !jsonEquals(before[key], after[key]))
  return Object.fromEntries(
    changed.map(key => [
      key,
      {
        ...(before[key] === undefined ? {} : { before: before[key] }),
        ...(after[key] === undefined ? {} : { after: after[key] }),
      },
    ]),
  )
}

const signs = { added: '+', deleted: '-', changed: '~' } as const

export function momentsLines(compared: MomentsCompared): string[] {
  const { from, to, files, missing, messages, projections } = compared
  const { before, after, shared } = messages
  const values = Object.entries(projections)
  return [
    `from event #${from} to event #${to}`,
    '',
    `context      ${counted(before, 'message')} → ${after}, ${shared} the same`,
    values.length === 0 ? 'projections  none changed' : `projections  ${values.length} changed`,
    ...values.flatMap(([key, change]) => [
      unbroken(`  ${key}`),
      `    - ${oneLine(JSON.stringify(change.before) ?? 'nothing')}`,
      `    + ${oneLine(JSON.stringify(change.after) ?? 'nothing')}`,
    ]),
    ...(files === undefined
      ? [unbroken(`files        unknown: ${missing}`)]
      : [
          files.length === 0 ? 'files        none changed' : `files        ${files.length} changed`,
          ...files.map(({ path, change }) => unbroken(`  ${signs[change]} ${path}`)),
        ]),
  ]
}
