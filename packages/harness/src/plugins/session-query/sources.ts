import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type {
  ReadableRow,
  Session,
  SessionPersistence,
  SessionRow,
  SessionStore,
  StoredGap,
  UnreadableRow,
} from '../../core/session/index.ts'
import { jsonEquals, messageOf } from '../../kernel/index.ts'
import { notFound, SessionQueryError } from './errors.ts'
import type { SessionEntry, SessionLog, SessionRecord } from './service.ts'
import { isReadable } from './service.ts'

/** A record, and the mark of what is stored of it: the same exactly as long as nothing was written. */
export interface MarkedRecord {
  readonly record: SessionRecord
  readonly revision?: string
}

export interface MarkedBatch {
  readonly events: readonly SessionEvent[]
  readonly gap?: Omit<StoredGap, 'events'> | undefined
}

export interface StreamFrom {
  readonly fromSeq: number
  readonly toSeq?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** The live sessions and the store as one: what is in both is one record, and its events are the live ones. */
export class Sources {
  readonly sessions: SessionStore
  readonly #store: () => SessionPersistence | undefined

  /** `store` is asked each time: it may come and go. */
  constructor(sessions: SessionStore, store: () => SessionPersistence | undefined) {
    this.sessions = sessions
    this.#store = store
  }

  get hasStore(): boolean {
    return this.#store() !== undefined
  }

  live(id: SessionId): Session | undefined {
    return this.sessions.get(id)
  }

  /** Newest first, what cannot be read last. One that is damaged hides no other. */
  async list(signal?: AbortSignal): Promise<readonly SessionEntry[]> {
    const { marked, unreadable } = await this.marked(signal)
    return [...marked.map(({ record }) => record), ...unreadable]
  }

  async marked(signal?: AbortSignal): Promise<{
    readonly marked: readonly MarkedRecord[]
    readonly unreadable: readonly UnreadableRow[]
  }> {
    const rows = await this.#rows(signal)
    const marked: MarkedRecord[] = []
    const unreadable: UnreadableRow[] = []
    const seen = new Set<SessionId>()
    for (const { row, revision } of rows) {
      const entry = this.#entryOf(row)
      seen.add(row.id)
      if (!isReadable(entry)) unreadable.push(entry)
      else marked.push({ record: entry, ...(revision === undefined ? {} : { revision }) })
    }
    for (const session of this.sessions.list())
      if (!seen.has(session.id)) marked.push({ record: liveRecord(session) })
    marked.sort(byAge)
    return { marked, unreadable }
  }

  /** The records with what is live at this moment, and those that only now began. */
  current(records: readonly SessionRecord[]): readonly SessionRecord[] {
    const known = new Set(records.map(({ id }) => id))
    const begun = this.sessions.list().filter(({ id }) => !known.has(id))
    const now = records.flatMap(record => {
      const live = this.live(record.id)
      if (live !== undefined) return [{ ...record, ...liveRecord(live), persisted: record.persisted }]
      return record.persisted ? [{ ...record, live: false }] : []
    })
    return [...now, ...begun.map(liveRecord)]
  }

  /** Rejects with SESSION_NOT_FOUND, or CORRUPT_SESSION where it is there and cannot be read. */
  async record(id: SessionId, signal?: AbortSignal): Promise<SessionRecord> {
    const live = this.live(id)
    if (live !== undefined) return liveRecord(live)
    const entry = (await this.list(signal)).find(each => each.id === id)
    if (entry === undefined) throw notFound(id)
    if (isReadable(entry)) return entry
    throw new SessionQueryError(
      'SESSION_QUERY_CORRUPT_SESSION',
      `session "${id}" cannot be read: ${entry.problem}`,
    )
  }

  /** The events of a session as they are now; a live one is never looked up in the store. */
  async read(id: SessionId, signal?: AbortSignal): Promise<SessionLog> {
    const before = this.live(id)
    if (before !== undefined) return liveLog(before)
    const store = this.#store()
    if (store === undefined) throw notFound(id)
    const stored = await asked(() => store.inspect(id, signal), id, signal)
    // It may have been resumed meanwhile.
    const after = this.live(id)
    if (after !== undefined) {
      assertSame(after, stored.header)
      return liveLog(after)
    }
    const { header, events, readOnly, gaps, holder } = stored
    const updatedAt = events.at(-1)?.time ?? header.createdAt
    const path = store.locate(header)
    const record = {
      id,
      header,
      live: false,
      persisted: true,
      updatedAt,
      ...(path === undefined ? {} : { path }),
      ...(holder === undefined ? {} : { holder }),
    }
    return {
      record,
      events,
      ...(readOnly === undefined ? {} : { readOnly }),
      ...(gaps === undefined ? {} : { gaps }),
    }
  }

  /** The stored events in batches; nothing is repaired, and a long log is never in memory as a whole. */
  async *stream(id: SessionId, { fromSeq, toSeq, signal }: StreamFrom): AsyncGenerator<MarkedBatch> {
    const store = this.#store()
    if (store === undefined) return
    yield* store.stream(id, { fromSeq, toSeq, signal })
  }

  async #rows(
    signal?: AbortSignal,
  ): Promise<readonly { readonly row: SessionRow; readonly revision?: string | undefined }[]> {
    const store = this.#store()
    if (store === undefined) return []
    const rows = await asked(() => store.list(signal), undefined, signal)
    return rows.map(row => ({ row, revision: 'header' in row ? row.revision : undefined }))
  }

  #entryOf(row: SessionRow): SessionEntry {
    const { id } = row
    const live = this.live(id)
    if (!('header' in row)) return live === undefined ? row : { ...liveRecord(live), persisted: true }
    if (live === undefined) return storedRecord(row)
    if (!isSame(live.header, row.header)) return { id, path: row.path, problem: conflictText(id) }
    return { ...storedRecord(row), ...liveRecord(live), persisted: true }
  }
}

function byAge({ record: a }: MarkedRecord, { record: b }: MarkedRecord): number {
  return b.updatedAt - a.updatedAt || b.header.createdAt - a.header.createdAt
}

function storedRecord({ id, header, updatedAt, path, bytes, holder }: ReadableRow): SessionRecord {
  return {
    id,
    header,
    live: false,
    persisted: true,
    updatedAt,
    path,
    ...(bytes === undefined ? {} : { bytes }),
    ...(holder === undefined ? {} : { holder }),
  }
}

function liveRecord(session: Session): SessionRecord {
  const { id, header, length } = session
  const updatedAt = session.at(length - 1)?.time ?? header.createdAt
  return { id, header, live: true, persisted: false, updatedAt }
}

function liveLog(session: Session): SessionLog {
  const { readOnly } = session
  return {
    record: liveRecord(session),
    events: session.events,
    ...(readOnly === undefined ? {} : { readOnly }),
  }
}

function assertSame(live: Session, stored: SessionHeader): void {
  if (isSame(live.header, stored)) return
  throw new SessionQueryError('SESSION_QUERY_SOURCE_CONFLICT', conflictText(live.id))
}

function isSame(live: SessionHeader, stored: SessionHeader): boolean {
  return (['createdAt', 'cwd', 'parentSession', 'seedLength'] as const).every(key =>
    jsonEquals(live[key] ?? null, stored[key] ?? null),
  )
}

function conflictText(id: SessionId): string {
  return `session "${id}" is live and stored with different facts of its birth`
}

/** What a store answers, in the words of this service. */
async function asked<T>(
  ask: () => Promise<T>,
  id: SessionId | undefined,
  signal: AbortSignal | undefined,
): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    if (signal?.aborted === true) throw aborted(signal)
    const { code } = (cause ?? {}) as { readonly code?: unknown }
    const subject = id === undefined ? 'the sessions cannot be listed' : `session "${id}" cannot be read`
    if (code === 'SESSION_NOT_FOUND' && id !== undefined) throw notFound(id)
    if (code === 'SESSION_DAMAGED' || code === 'SESSION_AMBIGUOUS')
      throw new SessionQueryError('SESSION_QUERY_CORRUPT_SESSION', `${subject}: ${messageOf(cause)}`, {
        cause,
      })
    throw new SessionQueryError('SESSION_QUERY_PERSISTENCE_FAILED', `${subject}: ${messageOf(cause)}`, {
      cause,
    })
  }
}

export function aborted(signal: AbortSignal): SessionQueryError {
  return new SessionQueryError('SESSION_QUERY_ABORTED', 'the question was withdrawn', {
    cause: signal.reason,
  })
}
