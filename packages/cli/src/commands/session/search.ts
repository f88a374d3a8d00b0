import { join } from 'node:path'
import type { SearchHit, SessionHits, SessionSearchPage } from '@dsh/harness/plugins/session-query'
import { countOption } from '../../count-option.ts'
import { CliError, quoted, usageError } from '../../errors.ts'
import { localTime, shortFolder } from '../../place-and-time.ts'
import { workFolder } from '../../run/folder.ts'
import { paint, styleOf } from '../../style.ts'
import type { Style } from '../../style.ts'
import { counted, inert, oneLine, unbroken } from '../../text.ts'
import type { CommandBody } from '../../command.ts'
import type { Io, Output } from '../../io.ts'
import { withReader } from './reader.ts'

const usualSessions = 10
const hitsPerSession = 3
const toldLeft = 5
/** Reading logs is told of when it takes longer, and then again now and then. */
const quietMs = 1000
const betweenMs = 10_000

export const search: CommandBody = ({ values, words: [query = ''] }, io) =>
  withReader(io, async ({ ctx }) => {
    const limit = countOption('limit', values.limit, 'dsh session search --limit 50 TEXT') ?? usualSessions
    const folder = values.here === true ? await workFolder(io.cwd, undefined) : undefined
    const onProgress = progressOn(io.err)
    const page = await ctx.sessionQuery
      .searchSessions(
        {
          query,
          limit,
          hitsPerSession,
          ...(folder === undefined ? {} : { sessions: [{ kind: 'cwd', values: [folder] }] }),
        },
        { onProgress },
      )
      .catch((error: unknown) => asCliError(error, io))
    const style = styleOf('out', io)
    for (const hits of page.sessions)
      io.out.write(values.json === true ? `${jsonHits(hits)}\n` : humanHits(hits, style))
    if (page.sessions.length === 0) io.err.line(`nothing holds "${oneLine(query)}"`)
    else if (page.nextCursor !== undefined) io.err.line(`there is more: --limit ${limit * 5}`)
    tellLeft(page, io)
    return 0
  })

function asCliError(error: unknown, { home }: Io): never {
  const { code, message } = error as { readonly code?: unknown; readonly message: string }
  if (code === 'SESSION_QUERY_INVALID_QUERY')
    throw usageError('INVALID_QUERY', message, 'dsh session search TEXT')
  if (code === 'SESSION_QUERY_INVALID_LIMIT')
    throw usageError('INVALID_NUMBER', message, 'dsh session search --limit 50 TEXT')
  if (code !== 'SESSION_QUERY_INDEX_FAILED') throw error
  const index = quoted(join(home, 'cache', 'index.sqlite'))
  throw new CliError(code, message, { cause: error, fix: `mv ${index} ${index}.old` })
}

function tellLeft({ left }: SessionSearchPage, io: Io): void {
  for (const [at, { id, reason }] of left.entries()) {
    if (at === toldLeft) {
      io.err.line(`${left.length - toldLeft} more sessions were not searched`)
      return
    }
    io.err.line(`not searched: ${unbroken(`${id}: ${reason}`)}`)
  }
}

function progressOn(err: Output): (done: number, total: number) => void {
  let tellAt = performance.now() + quietMs
  return (done, total) => {
    if (performance.now() < tellAt || done === total) return
    tellAt = performance.now() + betweenMs
    err.line(`reading ${total - done} of ${total} sessions, once; what was read is kept`)
    void err.flush()
  }
}

function jsonHits({ record, title, matched, hits }: SessionHits): string {
  const { id, header, updatedAt, path } = record
  const { createdAt, cwd } = header
  return JSON.stringify({ id, title, createdAt, updatedAt: Math.round(updatedAt), cwd, path, matched, hits })
}

function humanHits({ record, title = '', matched, hits }: SessionHits, style: Style): string {
  const { id, header, updatedAt } = record
  const facts = [localTime(updatedAt), shortFolder(header.cwd ?? ''), counted(matched, 'event')].filter(
    fact => fact !== '',
  )
  const head = `${paint(oneLine(title), 'bold', style)}  ${paint(unbroken(facts.join('  ')), 'dim', style)}`
  return [head.trimStart(), ...hits.map(hit => `  ${id}#${hit.seq}  ${line(hit, style)}`), ''].join('\n')
}

const kinds: Readonly<Record<string, string>> = {
  'user/message': 'prompt',
  'assistant/message': 'answer',
  'tool/call': 'call',
  'tool/result': 'result',
  'todo/write': 'todo',
  'turn/end': 'end',
  'session/title': 'title',
}

/** What people are shown is made harmless piece by piece: the marks stay where they are. */
function line({ type, snippet: { text, marks } }: SearchHit, style: Style): string {
  let shown = ''
  let at = 0
  for (const [start, end] of marks) {
    shown += unbroken(text.slice(at, start)) + paint(unbroken(text.slice(start, end)), 'yellow', style)
    at = end
  }
  return `${kinds[type] ?? inert(type)}: ${shown}${unbroken(text.slice(at))}`
}
