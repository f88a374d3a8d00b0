import type { SessionEvent, SessionId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { CallerQueries } from './caller.ts'
import type { SessionQueryConfig } from './config.ts'
import { SessionQueryError } from './errors.ts'
import { filtered, recordsOf, surfaceOf, titleOf, traceOf, windowOf } from './exact.ts'
import type { WindowRequest } from './exact.ts'
import { checkFilters, fitsSession } from './filter.ts'
import { lineageOf } from './lineage.ts'
import { LogIndex } from './log-index.ts'
import { overview } from './overview.ts'
import { dropLog } from './reconcile.ts'
import { searchEvents, searchSessions } from './search.ts'
import type { SearchHost } from './search.ts'
import { isReadable } from './service.ts'
import type {
  EventFilter,
  EventPlace,
  EventRecord,
  EventSearchPage,
  EventSearchRequest,
  EventTrace,
  EventWindow,
  Lineage,
  OverviewRequest,
  SearchOptions,
  SessionEntry,
  SessionFilter,
  SessionLog,
  SessionOverviews,
  SessionQueries,
  SessionQuery,
  SessionRecord,
  SessionSearchPage,
  SessionSearchRequest,
  TitleSnapshot,
} from './service.ts'
import type { Sources } from './sources.ts'

const forgetPatienceMs = 1000

/** Answers from the live sessions, the store and the index of its logs. */
export class IndexedQuery implements SessionQuery {
  readonly #sources: Sources
  readonly #config: SessionQueryConfig
  readonly #index: LogIndex | undefined

  constructor(sources: Sources, config: SessionQueryConfig) {
    const { path, maxIndexBytes } = config
    this.#sources = sources
    this.#config = config
    this.#index = path === undefined ? undefined : new LogIndex({ path, maxBytes: maxIndexBytes })
  }

  listSessions(signal?: AbortSignal): Promise<readonly SessionEntry[]> {
    return this.#sources.list(signal)
  }

  async overview(request: OverviewRequest = {}, signal?: AbortSignal): Promise<SessionOverviews> {
    return await overview(this.#host(), request, signal)
  }

  readSession(id: SessionId, signal?: AbortSignal): Promise<SessionLog> {
    return this.#sources.read(id, signal)
  }

  async filterSessions(
    filters: readonly SessionFilter[],
    signal?: AbortSignal,
  ): Promise<readonly SessionRecord[]> {
    checkFilters(filters)
    const entries = await this.#sources.list(signal)
    return entries.filter(isReadable).filter(record => fitsSession(record, filters))
  }

  async readTitle(id: SessionId, signal?: AbortSignal): Promise<string | undefined> {
    return (await this.readTitleSnapshot(id, signal))?.title
  }

  async readTitleSnapshot(id: SessionId, signal?: AbortSignal): Promise<TitleSnapshot | undefined> {
    const { events } = await this.#sources.read(id, signal)
    return titleOf(events)
  }

  async readTitleSnapshots(
    ids: readonly SessionId[],
    signal?: AbortSignal,
  ): Promise<readonly PromiseSettledResult<TitleSnapshot | undefined>[]> {
    const results = new Map<number, PromiseSettledResult<TitleSnapshot | undefined>>()
    const queue = ids.entries()
    const work = async (): Promise<void> => {
      for (const [at, id] of queue) {
        const [settled] = await Promise.allSettled([this.readTitleSnapshot(id, signal)])
        results.set(at, settled)
      }
    }
    await Promise.all(Array.from({ length: this.#config.persistedInspectConcurrency }, work))
    return ids.flatMap((_, at) => results.get(at) ?? [])
  }

  async listEvents(id: SessionId, signal?: AbortSignal): Promise<readonly EventRecord[]> {
    return recordsOf(await this.#sources.read(id, signal))
  }

  async filterEvents(
    id: SessionId,
    filters: readonly EventFilter[],
    signal?: AbortSignal,
  ): Promise<readonly EventRecord[]> {
    checkFilters(filters)
    return filtered(await this.#sources.read(id, signal), filters)
  }

  async readSurface(id: SessionId, signal?: AbortSignal): Promise<readonly SessionEvent[]> {
    const { events } = await this.#sources.read(id, signal)
    return surfaceOf(id, events).nodes.flatMap(seq => events[seq] ?? [])
  }

  async traceSession(id: SessionId, signal?: AbortSignal): Promise<Lineage> {
    return lineageOf(id, await this.#sources.list(signal))
  }

  async traceEvent(place: EventPlace, signal?: AbortSignal): Promise<EventTrace> {
    return traceOf(await this.#sources.read(place.sessionId, signal), place)
  }

  async readEvent(request: WindowRequest, signal?: AbortSignal): Promise<EventWindow> {
    const log = await this.#sources.read(request.sessionId, signal)
    return windowOf(log, request, this.#config.readWindowMax)
  }

  async searchSessions(request: SessionSearchRequest, options?: SearchOptions): Promise<SessionSearchPage> {
    return await searchSessions(this.#host(), request, options)
  }

  async searchEvents(request: EventSearchRequest, options?: SearchOptions): Promise<EventSearchPage> {
    return await searchEvents(this.#host(), request, options)
  }

  /** Lets go of what the index holds of a removed session. */
  async forget(id: SessionId): Promise<void> {
    await this.#index?.run(index => dropLog(index, id, forgetPatienceMs))
  }

  asCaller(agent: Agent): SessionQueries {
    return new CallerQueries(this, agent)
  }

  /** Waits for what runs. */
  async close(): Promise<void> {
    await this.#index?.close()
  }

  #host(): SearchHost {
    const index = this.#index
    if (index === undefined)
      throw new SessionQueryError('SESSION_QUERY_SEARCH_DISABLED', 'session-query has no path for its index')
    return { index, sources: this.#sources, config: this.#config }
  }
}
