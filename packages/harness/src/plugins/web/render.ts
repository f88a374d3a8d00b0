import type { WebSource } from './service.ts'

export interface FetchView {
  readonly url: string
  readonly statusCode: number
  readonly title?: string
  readonly text: string
  readonly shownLines: number
  readonly totalLines: number
  readonly totalBytes: number
  readonly artifact?: string
  readonly isPlain: boolean
  readonly truncated: boolean
  readonly redirect?: string
}

/** What a model reads of a fetched page. */
export function renderFetch(view: FetchView): string {
  const { url, statusCode, title, text, redirect } = view
  const head = `Fetched ${url} (HTTP ${statusCode})`
  if (redirect !== undefined)
    return `${head}\n\nIt redirects to another site: ${redirect}\nFetch that address if you want it.`
  const body = text === '' ? '(no text)' : text
  return [title === undefined ? head : `${head}\nTitle: ${title}`, body, ...footer(view)].join('\n\n')
}

function footer(view: FetchView): readonly string[] {
  const { shownLines, totalLines, totalBytes, artifact, isPlain, truncated } = view
  const notes: string[] = []
  if (isPlain) notes.push('bare text: the page could not be converted')
  if (truncated) notes.push('the page is longer than what is fetched; its end is missing')
  if (shownLines < totalLines) {
    const rest =
      artifact === undefined
        ? 'the rest was not kept'
        : `read artifact:${artifact} from offset ${shownLines + 1} for the rest`
    notes.push(`lines 1-${shownLines} of ${totalLines}, ${totalBytes} bytes in all; ${rest}`)
  }
  return notes.length === 0 ? [] : [`(${notes.join('; ')})`]
}

export interface SearchView {
  readonly answers: readonly { readonly query: string; readonly content: string }[]
  readonly sources: readonly WebSource[]
  readonly truncated: boolean
}

const citeNote = 'Name the sources you use, with their addresses.'

/** What a model reads of a search. */
export function renderSearch({ answers, sources, truncated }: SearchView): string {
  const parts = answers.map(({ query, content }) => `### ${query}\n\n${content}`)
  if (sources.length === 0) return [...parts, 'No sources found.'].join('\n\n')
  parts.push(['Sources:', ...sources.map(bullet)].join('\n'))
  if (truncated) parts.push('(more sources were found)')
  return [...parts, citeNote].join('\n\n')
}

function bullet({ url, title, snippet, publishedAt }: WebSource): string {
  const name = oneLine(title ?? new URL(url).hostname)
  const said = snippet === undefined ? '' : ` — ${oneLine(snippet)}`
  const when = publishedAt === undefined ? '' : ` (${oneLine(publishedAt)})`
  return `- [${name}](${url})${said}${when}`
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
