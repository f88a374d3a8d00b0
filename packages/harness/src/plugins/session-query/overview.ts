import type { SessionId } from '@dsh/protocol'
import { messageOf } from '../../kernel/index.ts'
import { SessionQueryError } from './errors.ts'
import type { IndexedLog } from './index-rows.ts'
import type { OpenIndex } from './log-index.ts'
import { reconcile } from './reconcile.ts'
import type { SearchHost } from './search.ts'
import type { OverviewRequest, SessionOverview, SessionOverviews } from './service.ts'
import { summaryFold } from './summary.ts'
import type { MarkedRecord } from './sources.ts'

const usualBudgetMs = 100

/**
 * The rows of a list. What the index does not know is read: of each row shown the beginning, up to what names it, and
 * then the rest as far as the time goes, the newest first. What was read stays, so that the next list knows more.
 */
export async function overview(
  host: SearchHost,
  request: OverviewRequest,
  signal?: AbortSignal,
): Promise<SessionOverviews> {
  const { marked, unreadable } = await host.sources.marked(signal)
  const { cwd, limit = Number.POSITIVE_INFINITY, withArchived = false } = request
  const inFolder = marked.filter(({ record }) => cwd === undefined || record.header.cwd === cwd)
  const others = cwd === undefined ? unreadable : []
  const { logs, problem } = await known(host, inFolder, request, signal)
  const rows = inFolder.map(each => toRow(host, each, logs.get(each.record.id)))
  const shown = withArchived ? rows : rows.filter(({ summary }) => summary?.archived !== true)
  return {
    rows: [...shown, ...others].filter((_, at) => at < limit),
    total: shown.length + others.length,
    ...(problem === undefined ? {} : { indexProblem: problem }),
  }
}

interface Known {
  readonly logs: ReadonlyMap<SessionId, IndexedLog>
  readonly problem?: string | undefined
}

/** An index that cannot be used costs the rows what it would have told, and nothing else. */
async function known(
  host: SearchHost,
  marked: readonly MarkedRecord[],
  request: OverviewRequest,
  signal: AbortSignal | undefined,
): Promise<Known> {
  try {
    return await host.index.run(index => readPage(index, host, marked, { request, signal }), signal)
  } catch (error) {
    if (!(error instanceof SessionQueryError) || error.code !== 'SESSION_QUERY_INDEX_FAILED') throw error
    return { logs: new Map(), problem: messageOf(error.cause ?? error) }
  }
}

interface PageOptions {
  readonly request: OverviewRequest
  readonly signal: AbortSignal | undefined
}

async function readPage(
  index: OpenIndex,
  { sources }: SearchHost,
  marked: readonly MarkedRecord[],
  { request, signal }: PageOptions,
): Promise<Known> {
  const { limit = Number.POSITIVE_INFINITY, budgetMs = usualBudgetMs, withArchived = false } = request
  const deadline = performance.now() + budgetMs
  const before = index.rows.all()
  // One that was worked on since may be back.
  const isHidden = ({ record: { id }, revision }: MarkedRecord): boolean => {
    const log = before.get(id)
    const isKnown = !withArchived && log?.revision === revision
    return isKnown && log?.digest.summary.archived === true
  }
  const page = marked.filter(each => !isHidden(each)).filter((_, at) => at < limit)
  const nameless = page.filter(
    ({ record: { id } }) => before.get(id)?.digest.summary.firstPrompt === undefined,
  )
  const options = { signal, patienceMs: 0 }
  await reconcile(index, sources, nameless, { ...options, known: before, until: 'first-prompt' })
  const known = nameless.length === 0 ? before : index.rows.all()
  const { generation } = index.rows
  await reconcile(index, sources, page, { ...options, known, until: 'end', deadline })
  return { logs: index.rows.generation === generation ? known : index.rows.all(), problem: index.problem }
}

function toRow(
  { sources }: SearchHost,
  { record, revision }: MarkedRecord,
  log: IndexedLog | undefined,
): SessionOverview {
  const live = sources.live(record.id)
  if (live !== undefined) return { ...record, summary: live.fold(summaryFold), isPartial: false }
  if (log === undefined) return { ...record, isPartial: true }
  return {
    ...record,
    summary: log.digest.summary,
    isPartial: log.revision === '' || log.revision !== revision,
  }
}
