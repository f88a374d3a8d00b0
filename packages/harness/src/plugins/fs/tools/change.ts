import type { JsonValue } from '@dsh/protocol'
import type { ToolView } from '../../../core/tools/index.ts'
import { isFields } from '../../../kernel/index.ts'
import type { BoundedDiff } from '../diff-text.ts'
import { FsError } from '../errors.ts'
import { readFileMeta } from '../observed.ts'

/** What write and edit have in common in their results. */
export const changeSchema = {
  path: { type: 'string', required: true },
  operation: { type: 'string', enum: ['create', 'update'], required: true },
  key: { type: 'string', required: true },
  version: { type: 'string', required: true },
  before: { oneOf: [{ type: 'string' }, { type: 'null' }], required: true },
  after: { type: 'string', required: true },
  otherLinks: { type: 'integer' },
  ownerLost: { type: 'boolean' },
  diff: {
    type: 'object',
    additionalProperties: false,
    properties: {
      hunks: {
        type: 'array',
        required: true,
        items: {
          type: 'object',
          additionalProperties: false,
          properties: {
            oldStart: { type: 'integer', required: true },
            newStart: { type: 'integer', required: true },
            lines: { type: 'array', items: { type: 'string' }, required: true },
          },
        },
      },
      added: { type: 'integer', required: true },
      removed: { type: 'integer', required: true },
      omitted: { type: 'integer', required: true },
    },
  },
} as const

export interface Change {
  readonly path: string
  readonly operation: 'create' | 'update'
  readonly key: string
  readonly version: string
  readonly before: string | null
  readonly after: string
  readonly otherLinks?: number
  readonly ownerLost?: boolean
  readonly diff?: BoundedDiff
}

/** What a change cost besides, as lines behind the result. */
export function lostText({ otherLinks = 0, ownerLost }: Pick<Change, 'otherLinks' | 'ownerLost'>): string {
  const links = otherLinks === 1 ? '1 other hard link keeps' : `${otherLinks} other hard links keep`
  return (
    (otherLinks === 0 ? '' : `\n(${links} the old content)`) +
    (ownerLost === true ? '\n(its owner could not be kept)' : '')
  )
}

/** What of an outcome stands in a result beside the file and the diff. */
export function lostIn({ otherLinks, ownerLost }: Pick<Change, 'otherLinks' | 'ownerLost'>) {
  return { ...(otherLinks !== undefined && { otherLinks }), ...(ownerLost && { ownerLost }) }
}

/** Tells in the log which file a call changed, from which bytes to which, and how. */
export function changeMeta(change: Change): JsonValue {
  const { path, operation, key, version, before, after, diff } = change
  const meta = { path, seen: { key, version }, change: { operation, before, after } }
  return diff === undefined ? meta : { ...meta, ...diff, hunks: diff.hunks.map(hunk => ({ ...hunk })) }
}

/** Undefined for a meta that this version cannot read. */
export function presentChange({ meta }: { readonly meta?: JsonValue }): ToolView | undefined {
  const file = readFileMeta(meta)
  if (file?.change === undefined || !isFields(meta)) return undefined
  const hunks = meta['hunks'] ?? []
  if (!Array.isArray(hunks) || !hunks.every(isHunk)) return undefined
  const { operation } = file.change
  return { card: 'diff', title: file.path, data: { path: file.path, operation, hunks } }
}

function isHunk(value: unknown): boolean {
  if (!isFields(value)) return false
  const { oldStart, newStart, lines } = value
  const isText = Array.isArray(lines) && lines.every(line => typeof line === 'string')
  return isText && Number.isInteger(oldStart) && Number.isInteger(newStart)
}

/** The same failure with what to do about it. */
export function withRemedy(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'FsError') return error
  const { code, message } = error as FsError
  if (code === 'FS_STALE_VERSION')
    return new FsError(code, `${message}; read it again, then retry`, { cause: error })
  if (code === 'FS_NOT_OBSERVED')
    return new FsError(code, `${message}; read it, then retry`, { cause: error })
  return error
}
