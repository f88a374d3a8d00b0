import type { JsonValue } from '@dsh/protocol'
import { utf8Length } from '../../core/tools/index.ts'
import type { ToolView } from '../../core/tools/index.ts'
import { isFields } from '../../kernel/index.ts'
import type { GlobValue, GrepValue } from './render.ts'

/** What cards list is bounded by this: a log keeps it beside the text. */
const maxListBytes = 16 * 1024

/** What a log keeps of a result for surfaces; the text itself stands in the content. */
export function globMeta({ paths, total }: GlobValue): JsonValue {
  return { shape: 'paths', total, paths: bounded(paths, path => utf8Length(path) + 4) }
}

export function grepMeta({ mode, files, matches, totalFiles, offset, shown }: GrepValue): JsonValue {
  const rows = files.map(({ path, lines }) => ({
    path,
    lines: lines.filter(line => line.isMatch).map(line => line.number),
  }))
  const kept = bounded(rows, ({ path, lines }) => utf8Length(path) + lines.length * 6 + 20)
  return { shape: 'matches', mode, matches, totalFiles, offset, shown, files: kept }
}

/** Undefined for a meta that this version cannot read. */
export function presentSearch(title: string, meta: JsonValue | undefined): ToolView | undefined {
  if (!isFields(meta)) return undefined
  const { shape, paths, files } = meta
  const isRight =
    shape === 'paths'
      ? Array.isArray(paths) &&
        paths.every(path => typeof path === 'string') &&
        Number.isInteger(meta['total'])
      : shape === 'matches' && Array.isArray(files) && files.every(isRow) && Number.isInteger(meta['matches'])
  return isRight ? { card: 'search', title, data: meta as JsonValue } : undefined
}

function isRow(value: unknown): boolean {
  if (!isFields(value)) return false
  const { path, lines } = value
  return typeof path === 'string' && Array.isArray(lines) && lines.every(Number.isInteger)
}

/** As many of the first as fit, and one in any case. */
function bounded<T>(list: readonly T[], bytesOf: (entry: T) => number): readonly T[] {
  let bytes = 0
  const end = list.findIndex((entry, index) => (bytes += bytesOf(entry)) > maxListBytes && index > 0)
  return end === -1 ? list : list.slice(0, end)
}
