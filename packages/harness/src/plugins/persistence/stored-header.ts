import { sessionFormatVersion } from '@dsh/protocol'
import type { JsonValue, SessionHeader } from '@dsh/protocol'
import { isCount, isFields, parseJson, toJsonText } from '../../kernel/index.ts'

/** What a medium stores of a session besides its events. */
export interface HeaderLine {
  readonly header: SessionHeader
  /** The log has a 'tool/start' for each top-level body that ran. */
  readonly toolStart: boolean
}

/** One line of JSON, without its end. */
export function toHeaderText(header: SessionHeader): string {
  const own: Readonly<Record<string, JsonValue>> = { type: 'session', toolStart: true }
  // The type comes first, for people who look; and own keys win over what a header may hold besides.
  return toJsonText({ type: 'session', ...(header as object), ...own })
}

/** The header, or in one sentence why the text is none. */
export function parseHeaderLine(text: string): HeaderLine | string {
  const value = parseJson(text)
  if (!isFields(value)) return 'the header is not JSON'
  const { type, toolStart, ...header } = value
  if (type !== 'session') return 'this is not the header of a session'
  if (!isCount(header['version'])) return `the header has version ${JSON.stringify(header['version'])}`
  const known = header['version'] <= sessionFormatVersion
  if (typeof header['id'] !== 'string' || header['id'] === '') return 'the header has no id'
  if (known && !isCount(header['createdAt'])) return 'the header has no creation time'
  return { header: header as unknown as SessionHeader, toolStart: toolStart === true }
}
