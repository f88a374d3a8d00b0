import { cutText, utf8Length } from '../../core/tools/index.ts'
import type { WebFetchResult } from './service.ts'

/** A fetched text, and as much of it as is shown. */
export interface Page {
  readonly title?: string
  readonly shown: string
  readonly shownLines: number
  readonly totalLines: number
  readonly totalBytes: number
  /** The whole text, where not all of it is shown. */
  readonly rest?: string
  readonly isPlain: boolean
}

/** In UTF-16 units; `read` cuts longer lines. */
const maxLineLength = 1800

/** The result as text of short lines; whole lines of at most `maxBytes`, one in any case, are shown. */
export async function pageOf(
  { url, body }: WebFetchResult,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Page> {
  if (body.kind === 'text') return { ...bounded(body.content, maxBytes), isPlain: false }
  const { toMarkdown } = await import('./markdown.ts')
  const { title, text, isPlain } = await toMarkdown(body.content, url, signal)
  return { ...(title !== undefined && { title: cutText(title, 300) }), ...bounded(text, maxBytes), isPlain }
}

type Bounded = Omit<Page, 'title' | 'isPlain'>

function bounded(content: string, maxBytes: number): Bounded {
  const lines = content
    .toWellFormed()
    .replace(/\r\n?/g, '\n')
    .replace(/\n+$/, '')
    .split('\n')
    .flatMap(wrapped)
  const text = lines.join('\n')
  const totalLines = text === '' ? 0 : lines.length
  const totalBytes = utf8Length(text)
  if (totalBytes <= maxBytes) return { shown: text, shownLines: totalLines, totalLines, totalBytes }
  const shown: string[] = []
  let bytes = 0
  for (const line of lines) {
    bytes += utf8Length(line) + 1
    if (bytes > maxBytes && shown.length > 0) break
    shown.push(line)
  }
  return { shown: shown.join('\n'), shownLines: shown.length, totalLines, totalBytes, rest: text }
}

/** Breaks a long line at spaces where it has some, never inside a character. */
function wrapped(line: string): readonly string[] {
  const parts: string[] = []
  let from = 0
  while (line.length - from > maxLineLength) {
    const space = line.lastIndexOf(' ', from + maxLineLength)
    let to = space > from + maxLineLength / 2 ? space + 1 : from + maxLineLength
    if (isInsidePair(line, to)) to--
    parts.push(line.slice(from, to).trimEnd())
    from = to
  }
  parts.push(line.slice(from))
  return parts
}

function isInsidePair(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff
}
