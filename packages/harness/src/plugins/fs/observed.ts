import type { SessionEvent } from '@dsh/protocol'
import type { FoldDefinition } from '../../core/session/index.ts'
import { isFields } from '../../kernel/index.ts'
import type { FsTarget, FsTargetKey, FsVersion } from './service.ts'

/** What a tool result tells of the file it was about: kept in the log as its `meta`. */
export interface FileMeta {
  readonly path: string
  /** The file as the model has seen it with this result. */
  readonly seen: { readonly key: FsTargetKey; readonly version: FsVersion }
  readonly change?: FileChangeMeta
}

export interface FileChangeMeta {
  readonly operation: 'create' | 'update'
  /** SHA-256 in hex of the bytes on disk; null where there was no file. */
  readonly before: string | null
  readonly after: string
}

export function fileMeta({ targetKey, displayPath }: FsTarget, version: FsVersion): FileMeta {
  return { path: displayPath, seen: { key: targetKey, version } }
}

/** The file facts of a `meta`, or undefined where it tells of no file or has another form. */
export function readFileMeta(meta: unknown): FileMeta | undefined {
  if (!isFields(meta) || typeof meta['path'] !== 'string' || !isFields(meta['seen'])) return undefined
  const { key, version } = meta['seen']
  if (typeof key !== 'string' || typeof version !== 'string') return undefined
  const seen = { key: key as FsTargetKey, version: version as FsVersion }
  const change = readChange(meta['change'])
  return { path: meta['path'], seen, ...(change && { change }) }
}

function readChange(value: unknown): FileChangeMeta | undefined {
  if (!isFields(value)) return undefined
  const { operation, before, after } = value
  const isBefore = before === null || typeof before === 'string'
  if ((operation !== 'create' && operation !== 'update') || !isBefore || typeof after !== 'string')
    return undefined
  return { operation, before, after }
}

interface SeenFile {
  readonly key: FsTargetKey
  readonly version: FsVersion
  readonly earlier: SeenFile | undefined
}

/** The versions that results in the log tell, the latest first. A list, so that each step costs the same. */
export const seenFiles: FoldDefinition<SeenFile | undefined, 'tool/result'> = {
  name: 'seen files',
  types: ['tool/result'],
  init: () => undefined,
  apply(earlier, { data, surfaceOp }) {
    const meta = surfaceOp === 'append' ? readFileMeta(data.meta) : undefined
    return meta === undefined ? earlier : { ...meta.seen, earlier }
  },
}

export function lastSeen(files: SeenFile | undefined, key: FsTargetKey): FsVersion | undefined {
  for (let file = files; file !== undefined; file = file.earlier) if (file.key === key) return file.version
  return undefined
}

/** A file that a session changed, from the first change to the last. */
export interface ChangedFile {
  readonly path: string
  /** SHA-256 in hex before the first change; null where the session made the file. */
  readonly before: string | null
  /** After the last change that the log tells. */
  readonly after: string
}

/** The files that results in a log say were changed by file tools, in the order of their first change. */
export function changedFiles(events: Iterable<SessionEvent>): readonly ChangedFile[] {
  const files = new Map<string, ChangedFile>()
  for (const event of events) {
    if (event.type !== 'tool/result' || event.surfaceOp !== 'append') continue
    const meta = readFileMeta(event.data.meta)
    if (meta?.change === undefined) continue
    const { before, after } = meta.change
    const first = files.get(meta.seen.key)
    files.set(meta.seen.key, { path: meta.path, before: first === undefined ? before : first.before, after })
  }
  return [...files.values()].filter(file => file.before !== file.after)
}
