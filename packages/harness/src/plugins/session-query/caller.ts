import type { SessionId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { turnCursor } from '../../core/session/index.ts'
import { SessionQueryError } from './errors.ts'
import type {
  EventPlace,
  EventSearchPage,
  EventSearchRequest,
  EventTrace,
  EventWindow,
  Lineage,
  LineageNode,
  SearchOptions,
  SessionQueries,
  SessionQuery,
  SessionRecord,
  SessionSearchPage,
  SessionSearchRequest,
} from './service.ts'

type Owner = Pick<SessionQuery, 'listSessions' | keyof SessionQueries>

/**
 * What an agent may ask: of its own session, and of those with exactly the same folder. What is not there and what is
 * not its to read look the same. An agent without a folder sees itself alone.
 */
export class CallerQueries implements SessionQueries {
  readonly #query: Owner
  readonly #agent: Agent

  constructor(query: Owner, agent: Agent) {
    this.#query = query
    this.#agent = agent
  }

  async traceSession(id: SessionId, signal?: AbortSignal): Promise<Lineage> {
    await this.#assertVisible(id, signal)
    const { ancestors, descendants, origin } = await this.#query.traceSession(id, signal)
    const hidden = ancestors.findIndex(record => !this.#sees(record))
    const visible = hidden < 0 ? ancestors : ancestors.slice(0, hidden)
    return {
      ancestors: visible,
      descendants: this.#visibleBelow(descendants),
      // Where the line leaves what may be seen it ends, without a name.
      origin: hidden < 0 && origin.complete ? origin : { complete: false, unresolvedParentId: hiddenId },
    }
  }

  async traceEvent(place: EventPlace, signal?: AbortSignal): Promise<EventTrace> {
    await this.#assertVisible(place.sessionId, signal)
    return await this.#query.traceEvent(place, signal)
  }

  async readEvent(
    place: EventPlace & { readonly before?: number; readonly after?: number },
    signal?: AbortSignal,
  ): Promise<EventWindow> {
    await this.#assertVisible(place.sessionId, signal)
    return await this.#query.readEvent(place, signal)
  }

  /** Without the session of the caller, which it has before its eyes. */
  async searchSessions(
    request: SessionSearchRequest,
    options: SearchOptions = {},
  ): Promise<SessionSearchPage> {
    const visible = await this.#visibleIds(options.signal)
    const { sessions: asked = [] } = request
    const parents = asked.flatMap(filter => (filter.kind === 'parent' ? filter.values : []))
    const hidden = parents.find(id => id !== null && !visible.has(id))
    if (hidden !== undefined && hidden !== null) throw unauthorized(hidden)
    visible.delete(this.#agent.id)
    const sessions = [...asked, { kind: 'id' as const, values: [...visible] }]
    const page = await this.#query.searchSessions({ ...request, sessions }, options)
    return { ...page, left: page.left.filter(({ id }) => visible.has(id)) }
  }

  /** In its own session up to the step that asks: its question and what it says about it are no finds. */
  async searchEvents(request: EventSearchRequest, options: SearchOptions = {}): Promise<EventSearchPage> {
    const { sessionId, events = [] } = request
    await this.#assertVisible(sessionId, options.signal)
    const before = sessionId === this.#agent.id ? [{ kind: 'seq' as const, to: this.#stepStart() - 1 }] : []
    const page = await this.#query.searchEvents({ ...request, events: [...events, ...before] }, options)
    return { ...page, left: page.left.filter(({ id }) => id === sessionId) }
  }

  #stepStart(): number {
    const { session } = this.#agent
    const start = session.last('step/start')
    if (start !== undefined && session.fold(turnCursor).openStep !== undefined) return start.seq
    throw new SessionQueryError('SESSION_QUERY_TOOL_NO_CURRENT_STEP', 'the caller is in no step')
  }

  async #assertVisible(id: SessionId, signal: AbortSignal | undefined): Promise<void> {
    if (id === this.#agent.id || (await this.#visibleIds(signal)).has(id)) return
    throw unauthorized(id)
  }

  async #visibleIds(signal: AbortSignal | undefined): Promise<Set<SessionId>> {
    if (this.#agent.session.header.cwd === undefined) return new Set([this.#agent.id])
    const entries = await this.#query.listSessions(signal)
    return new Set(entries.flatMap(entry => ('header' in entry && this.#sees(entry) ? [entry.id] : [])))
  }

  #sees({ id, header }: SessionRecord): boolean {
    const { cwd } = this.#agent.session.header
    return id === this.#agent.id || (cwd !== undefined && header.cwd === cwd)
  }

  #visibleBelow(nodes: readonly LineageNode[]): readonly LineageNode[] {
    return nodes.flatMap(({ record, children }) =>
      this.#sees(record) ? [{ record, children: this.#visibleBelow(children) }] : [],
    )
  }
}

/** Stands for a session that the caller may not know of. */
export const hiddenId = '' as SessionId

function unauthorized(id: string): SessionQueryError {
  return new SessionQueryError(
    'SESSION_QUERY_TOOL_UNAUTHORIZED',
    `session "${id}" is not there, or not in this folder`,
  )
}
