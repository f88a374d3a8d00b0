import type { SessionId } from '@dsh/protocol'
import type { SessionQueryConfig } from './config.ts'
import { cursorAt, offsetOf } from './cursor.ts'
import { notFound, SessionQueryError } from './errors.ts'
import { checkFilters, fitsSession } from './filter.ts'
import { byRank, findOn, textOfFound } from './find.ts'
import type { FindOptions, FoundEvent } from './find.ts'
import type { IndexedLog } from './index-rows.ts'
import type { LogIndex, OpenIndex } from './log-index.ts'
import { Needle } from './needle.ts'
import { dropVanished, makeRoomIn, reconcile } from './reconcile.ts'
import type {
  EventSearchPage,
  EventSearchRequest,
  LeftSession,
  SearchHit,
  SearchOptions,
  SessionHits,
  SessionRecord,
  SessionSearchPage,
  SessionSearchRequest,
} from './service.ts'
import { aborted } from './sources.ts'
import type { MarkedRecord, Sources } from './sources.ts'

const removedText = 'it is too old for the size of the index'
/** One clause of a search within a session names the session. */
const mostEventClauses = 13
const mostClauses = 14

/** What searches need. */
export interface SearchHost {
  readonly index: LogIndex
  readonly sources: Sources
  readonly config: SessionQueryConfig
}

interface Snapshot {
  readonly index: OpenIndex
  readonly logs: ReadonlyMap<SessionId, IndexedLog>
  readonly records: ReadonlyMap<SessionId, SessionRecord>
  readonly left: readonly LeftSession[]
}

export async function searchSessions(
  host: SearchHost,
  request: SessionSearchRequest,
  options: SearchOptions = {},
): Promise<SessionSearchPage> {
  const { query, sessions = [], events = [], hitsPerSession = 1 } = request
  const needle = new Needle(query)
  checkFilters([...sessions, ...events], mostClauses)
  const limit = limitOf(request.limit, host.config)
  const perSession = limitOf(hitsPerSession, host.config)
  return await upToDate(
    host,
    options,
    record => fitsSession(record, sessions),
    snapshot => {
      const { index, records, left } = snapshot
      const found = find(snapshot, records.keys(), needle, { filters: events, perSession })
      const groups = [...Map.groupBy(found, ({ session }) => session).values()].sort(byBest)
      const place = {
        request: [needle.text, sessions, events, hitsPerSession],
        nonce: index.nonce,
        generation: `${index.rows.generation}.${index.live.generation}`,
      }
      const { page, next } = pageOf(groups, offsetOf(request.cursor, place), limit)
      const toHit = hitMaker(index, needle, host.config)
      const hits = page.flatMap(group => toSessionHits(group, snapshot, toHit))
      return { sessions: hits, left, ...(next === undefined ? {} : { nextCursor: cursorAt(place, next) }) }
    },
  )
}

export async function searchEvents(
  host: SearchHost,
  request: EventSearchRequest,
  options: SearchOptions = {},
): Promise<EventSearchPage> {
  const { query, sessionId, events = [] } = request
  const needle = new Needle(query)
  checkFilters(events, mostEventClauses)
  const limit = limitOf(request.limit, host.config)
  return await upToDate(
    host,
    options,
    ({ id }) => id === sessionId,
    snapshot => {
      const { index, logs, records, left } = snapshot
      const record = records.get(sessionId)
      if (record === undefined) throw missing(sessionId, left)
      const found = find(snapshot, [sessionId], needle, {
        filters: events,
        perSession: Number.MAX_SAFE_INTEGER,
      })
      const place = {
        request: [needle.text, sessionId, events],
        nonce: index.nonce,
        // What happens to others leaves it as it is.
        generation: record.live
          ? `live.${index.live.lengthOf(sessionId)}`
          : `${logs.get(sessionId)?.generation}`,
      }
      const { page, next } = pageOf(found.toSorted(byRank), offsetOf(request.cursor, place), limit)
      const hits = page.map(hitMaker(index, needle, host.config))
      return { record, hits, left, ...(next === undefined ? {} : { nextCursor: cursorAt(place, next) }) }
    },
  )
}

function missing(id: SessionId, left: readonly LeftSession[]): SessionQueryError {
  const reason = left.find(each => each.id === id)?.reason
  if (reason === undefined) return notFound(id)
  return new SessionQueryError('SESSION_QUERY_CORRUPT_SESSION', `session "${id}" cannot be read: ${reason}`)
}

/** Answers from the index once it knows what the sources hold of the sessions that fit. */
async function upToDate<T>(
  { index: file, sources, config }: SearchHost,
  { signal, onProgress }: SearchOptions,
  fits: (record: SessionRecord) => boolean,
  answer: (snapshot: Snapshot) => T,
): Promise<T> {
  return await file.run(async index => {
    const { marked, unreadable } = await sources.marked(signal)
    const { patienceMs } = config
    const known = index.rows.all()
    const wanted = marked.filter(({ record }) => fits(record))
    if (sources.hasStore) {
      const stored = marked.filter(({ record }) => record.persisted).map(({ record }) => record.id)
      await dropVanished(index, new Set([...stored, ...unreadable.map(({ id }) => id)]), {
        known,
        patienceMs,
      })
    }
    const late = await reconcile(index, sources, wanted, {
      known,
      until: 'end',
      signal,
      onProgress,
      patienceMs,
    })
    await makeRoomIn(index, marked, { maxBytes: config.maxIndexBytes, patienceMs })
    await index.live.follow(sources.sessions.list(), signal)
    if (signal?.aborted === true) throw aborted(signal)
    // Some may have begun or ended while we read.
    const records = sources.current(marked.map(({ record }) => record)).filter(fits)
    const problems = unreadable.map(({ id, problem }) => ({ id, reason: problem }))
    index.db.exec('BEGIN')
    try {
      const logs = index.rows.all()
      const left = [...late, ...lackingOf(logs, index, wanted), ...problems]
      return answer({ index, logs, records: new Map(records.map(record => [record.id, record])), left })
    } finally {
      index.db.exec('COMMIT')
    }
  }, signal)
}

/** Logs that the index holds only in part, and why that stays so. */
function lackingOf(
  logs: Snapshot['logs'],
  { live }: OpenIndex,
  wanted: readonly MarkedRecord[],
): readonly LeftSession[] {
  return wanted.flatMap(({ record: { id } }) => {
    const log = live.keyOf(id) === undefined ? logs.get(id) : undefined
    const reason = log?.hasDocuments === false ? removedText : log?.gap
    return reason === undefined ? [] : [{ id, reason }]
  })
}

/** What is live is looked for among the live documents alone. */
function find(
  { index: { db, live }, logs }: Snapshot,
  ids: Iterable<SessionId>,
  needle: Needle,
  options: FindOptions,
): readonly FoundEvent[] {
  const keys = { live: new Map<number, SessionId>(), stored: new Map<number, SessionId>() }
  for (const id of ids) {
    const liveKey = live.keyOf(id)
    const key = liveKey ?? logs.get(id)?.key
    if (key !== undefined) keys[liveKey === undefined ? 'stored' : 'live'].set(key, id)
  }
  const places = ['stored', 'live'] as const
  return places.flatMap(place => findOn(db, { place, keys: keys[place] }, needle, options))
}

/** Events of one session come best first. */
function byBest([a]: readonly FoundEvent[], [b]: readonly FoundEvent[]): number {
  return a === undefined || b === undefined ? 0 : byRank(a, b)
}

function toSessionHits(
  group: readonly FoundEvent[],
  { index, logs, records }: Snapshot,
  toHit: (event: FoundEvent) => SearchHit,
): readonly SessionHits[] {
  const [best] = group
  const record = best === undefined ? undefined : records.get(best.session)
  if (best === undefined || record === undefined) return []
  const { id } = record
  const { title } = index.live.summaryOf(id) ?? logs.get(id)?.digest.summary ?? {}
  return [
    { record, ...(title === undefined ? {} : { title }), matched: best.matched, hits: group.map(toHit) },
  ]
}

function hitMaker({ db }: OpenIndex, needle: Needle, { snippetChars }: SessionQueryConfig) {
  return (event: FoundEvent): SearchHit => {
    const { seq, type, time, surface, matches } = event
    const snippet = needle.snippetOf(textOfFound(db, event), snippetChars)
    return { seq, type, time, surface, matches, snippet }
  }
}

function pageOf<T>(
  all: readonly T[],
  offset: number,
  limit: number,
): { readonly page: readonly T[]; readonly next: number | undefined } {
  const end = offset + limit
  return { page: all.slice(offset, end), next: end < all.length ? end : undefined }
}

function limitOf(limit: number | undefined, { defaultLimit, maxLimit }: SessionQueryConfig): number {
  if (limit === undefined) return defaultLimit
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= maxLimit) return limit
  throw new SessionQueryError(
    'SESSION_QUERY_INVALID_LIMIT',
    `the limit is ${limit}, expected 1 to ${maxLimit}`,
  )
}
