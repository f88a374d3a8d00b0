import type { SessionEvent, SessionEventType, SessionHeader, SessionId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { SessionHolder, StoredGap, UnreadableRow } from '../../core/session/index.ts'

/** One session, live, stored or both. What is live is read from its session, never from the store. */
export interface SessionRecord {
  readonly id: SessionId
  readonly header: SessionHeader
  readonly live: boolean
  readonly persisted: boolean
  /** When it was last written; of a live one, the time of its last event. Epoch ms. */
  readonly updatedAt: number
  readonly path?: string
  /** What it takes where it is stored. */
  readonly bytes?: number
  /** Another program that writes it. */
  readonly holder?: SessionHolder
}

export type SessionEntry = SessionRecord | UnreadableRow

export function isReadable(entry: SessionEntry): entry is SessionRecord {
  return 'header' in entry
}

/** What a list shows of a session beside its header. */
export interface SessionSummary {
  /** One line, cut: the latest given title, else the first prompt. Absent before the first prompt. */
  readonly title?: string
  /** Whether somebody thought of the title; else it is made of the first prompt. */
  readonly isTitled: boolean
  /** One line, cut. */
  readonly firstPrompt?: string
  /** When a person last said something. Epoch ms. */
  readonly lastPromptAt?: number
  readonly turns: number
  /** Of the last request, `provider/model`. */
  readonly model?: string
  readonly archived: boolean
}

export type SessionOverview = SessionRecord & {
  /** Absent where nothing of the log was read yet. */
  readonly summary?: SessionSummary
  /** The summary tells of the beginning of the log only; reading more was left for later. */
  readonly isPartial: boolean
}

export interface OverviewRequest {
  /** How many at most, the newest first; all where absent. */
  readonly limit?: number
  /** Only sessions of this folder, by the same string. */
  readonly cwd?: string
  /** Archived ones too. */
  readonly withArchived?: boolean
  /** Reading logs that the index does not know yet ends after so long; then rows are partial. */
  readonly budgetMs?: number
}

export interface SessionOverviews {
  readonly rows: readonly (SessionOverview | UnreadableRow)[]
  /** How many sessions there are in all that fit the request. */
  readonly total: number
  /** Why no index could be used, where that is so; the rows are right all the same. */
  readonly indexProblem?: string
}

/** Where an event stands in the model's view. */
export type EventSurface = 'current' | 'shadowed' | 'log-only'

export interface EventRecord {
  readonly event: SessionEvent
  readonly surface: EventSurface
}

export interface SessionLog {
  readonly record: SessionRecord
  readonly events: readonly SessionEvent[]
  readonly readOnly?: string
  readonly gaps?: readonly StoredGap[]
}

export interface TitleSnapshot {
  readonly title: string
  /** The event that gave the title, or the first prompt that stands for one. */
  readonly eventSeq: number
  readonly updatedAt: number
}

interface Range {
  /** Inclusive. */
  readonly from?: number
  /** Inclusive. */
  readonly to?: number
}

export type SessionFilter =
  | { readonly kind: 'id'; readonly values: readonly SessionId[] }
  /** null: those without a folder. */
  | { readonly kind: 'cwd'; readonly values: readonly (string | null)[] }
  | ({ readonly kind: 'created-at' } & Range)
  /** null: those without a parent. */
  | { readonly kind: 'parent'; readonly values: readonly (SessionId | null)[] }
  | { readonly kind: 'availability'; readonly values: readonly ('live' | 'persisted')[] }

export type EventPlaceFilter =
  | ({ readonly kind: 'seq' } & Range)
  | ({ readonly kind: 'time' } & Range)
  | { readonly kind: 'type'; readonly values: readonly SessionEventType[] }
  | { readonly kind: 'surface'; readonly values: readonly EventSurface[] }

/** `text`: a part of what the event says to people, in whatever case; white space stands for any white space. */
export type EventFilter = EventPlaceFilter | { readonly kind: 'text'; readonly value: string }

export interface Lineage {
  /** Nearest first. */
  readonly ancestors: readonly SessionRecord[]
  readonly descendants: readonly LineageNode[]
  /** Where the line of parents ends: at a session without one, or at one that is not there. */
  readonly origin:
    | { readonly complete: true; readonly root: SessionId }
    | { readonly complete: false; readonly unresolvedParentId: SessionId }
}

export interface LineageNode {
  readonly record: SessionRecord
  readonly children: readonly LineageNode[]
}

export interface EventPlace {
  readonly sessionId: SessionId
  readonly seq: number
}

export interface EventTrace extends EventRecord {
  /** The event that stands in its place now or stood there first. */
  readonly replacedBy?: number
  /** The same, followed to the event that the model sees. */
  readonly replacementChain: readonly number[]
  readonly replacedEventSeqs: readonly number[]
  readonly sourceEventSeqs: readonly number[]
  /** Later events that stand on this one. */
  readonly derivedEventSeqs: readonly number[]
}

export interface EventWindow {
  readonly target: EventRecord
  readonly before: readonly EventRecord[]
  readonly after: readonly EventRecord[]
}

interface SearchRequest {
  /** A piece of text as it stands, in whatever case. Nothing in it is an operator. */
  readonly query: string
  readonly events?: readonly EventPlaceFilter[]
  readonly limit?: number
  /** What the page before gave as `nextCursor`. */
  readonly cursor?: string
}

export interface SessionSearchRequest extends SearchRequest {
  readonly sessions?: readonly SessionFilter[]
  /** How many hits are told of each session; default 1. */
  readonly hitsPerSession?: number
}

export interface EventSearchRequest extends SearchRequest {
  readonly sessionId: SessionId
}

export interface SearchHit {
  readonly seq: number
  readonly type: string
  readonly time: number
  readonly surface: EventSurface
  /** How often the query stands in the text of the event. */
  readonly matches: number
  readonly snippet: Snippet
}

/** A part of a text on one line. */
export interface Snippet {
  readonly text: string
  /** Where the query stands in it, as UTF-16 offsets. */
  readonly marks: readonly (readonly [start: number, end: number])[]
}

export interface SessionHits {
  readonly record: SessionRecord
  readonly title?: string
  /** How many events match. */
  readonly matched: number
  /** The best first; at least one. */
  readonly hits: readonly SearchHit[]
}

interface SearchPage {
  readonly nextCursor?: string
  /** Sessions that are not in the answer because they could not be read, or not in time. */
  readonly left: readonly LeftSession[]
}

export interface LeftSession {
  readonly id: SessionId
  readonly reason: string
}

export interface SessionSearchPage extends SearchPage {
  readonly sessions: readonly SessionHits[]
}

export interface EventSearchPage extends SearchPage {
  readonly record: SessionRecord
  readonly hits: readonly SearchHit[]
}

export interface SearchOptions {
  readonly signal?: AbortSignal | undefined
  /** Hears how far the index is, when logs must be read first. */
  readonly onProgress?: (done: number, total: number) => void
}

/** What may be asked of one session or several; `asCaller` gives the same within an agent's rights. */
export interface SessionQueries {
  traceSession(id: SessionId, signal?: AbortSignal): Promise<Lineage>
  traceEvent(place: EventPlace, signal?: AbortSignal): Promise<EventTrace>
  readEvent(
    place: EventPlace & { readonly before?: number; readonly after?: number },
    signal?: AbortSignal,
  ): Promise<EventWindow>
  searchSessions(request: SessionSearchRequest, options?: SearchOptions): Promise<SessionSearchPage>
  searchEvents(request: EventSearchRequest, options?: SearchOptions): Promise<EventSearchPage>
}

/**
 * Finds sessions and what was said in them, as `ctx.sessionQuery`. Whoever has it may read everything. Nothing is ever
 * written to a log; what is live is read where it lives, unsaved events included.
 */
export interface SessionQuery extends SessionQueries {
  /** Newest first; what cannot be read stands last, with the reason. */
  listSessions(signal?: AbortSignal): Promise<readonly SessionEntry[]>
  /** The newest sessions with what a list shows of them, from the index. */
  overview(request?: OverviewRequest, signal?: AbortSignal): Promise<SessionOverviews>
  readSession(id: SessionId, signal?: AbortSignal): Promise<SessionLog>
  /** All filters must fit; in a list of values, one. */
  filterSessions(filters: readonly SessionFilter[], signal?: AbortSignal): Promise<readonly SessionRecord[]>
  readTitle(id: SessionId, signal?: AbortSignal): Promise<string | undefined>
  readTitleSnapshot(id: SessionId, signal?: AbortSignal): Promise<TitleSnapshot | undefined>
  /** In the order of `ids`; one that fails leaves the others alone. */
  readTitleSnapshots(
    ids: readonly SessionId[],
    signal?: AbortSignal,
  ): Promise<readonly PromiseSettledResult<TitleSnapshot | undefined>[]>
  listEvents(id: SessionId, signal?: AbortSignal): Promise<readonly EventRecord[]>
  filterEvents(
    id: SessionId,
    filters: readonly EventFilter[],
    signal?: AbortSignal,
  ): Promise<readonly EventRecord[]>
  /** The events the model sees, in its order. */
  readSurface(id: SessionId, signal?: AbortSignal): Promise<readonly SessionEvent[]>
  /** The same questions in the name of an agent: its own session, and those with exactly its folder. */
  asCaller(agent: Agent): SessionQueries
}

declare module '../../kernel/index.ts' {
  interface Services {
    sessionQuery: SessionQuery
  }
}
