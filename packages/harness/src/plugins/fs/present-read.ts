import type { JsonValue } from '@dsh/protocol'
import type { ToolView } from '../../core/tools/index.ts'
import { isFields } from '../../kernel/index.ts'

/** The card of a read; undefined for a meta that this version cannot read. */
export function presentRead(meta: JsonValue | undefined): ToolView | undefined {
  if (!isFields(meta)) return undefined
  const { path, offset, lines, totalLines, lang, image } = meta
  if (typeof path !== 'string' || typeof lang !== 'string') return undefined
  if (![offset, lines, totalLines].every(Number.isInteger)) return undefined
  const data = { path, offset, lines, totalLines, lang, ...(isFields(image) && { image }) }
  return { card: 'read', title: path, data: data as JsonValue }
}
