import { surfaceEventTypes } from '@dsh/protocol'
import type {
  SessionEvent,
  SessionEventMap,
  SessionEventType,
  SessionHeader,
  SessionId,
  StreamChunk,
  SurfaceEventType,
  SurfaceIntent,
  SurfaceOp,
} from '@dsh/protocol'
import { adopt, isPositive, messageOf } from '../../kernel/index.ts'
import { adoptChunk } from '../llm/index.ts'
import { SessionArtifacts } from './artifacts.ts'
import { Delivery } from './delivery.ts'
import { SessionError } from './errors.ts'
import { coreEventTypes } from './event-types.ts'
import type { EventTypes } from './event-types.ts'
import { readHeader } from './header.ts'
import { interruptedTurnClosers } from './repair.ts'
import { readSeed } from './seed.ts'
import type { Seed, UnknownEvent } from './seed.ts'
import { addSources, readSources } from './sources.ts'
import type { Sources } from './sources.ts'
import { isSurfaceType, readOp, SurfaceManager } from './surface.ts'
import type { Span, SurfaceEvent } from './surface.ts'
import { SessionView } from './view.ts'

/** What `append` may be told of an event that is not on the surface. */
export interface EventIntent {
  /** A reader that does not know the type may skip the event. */
  readonly ignorable?: true
}

/** Of a surface event: its place, and what it stands on, where a long run of events need not be a list. */
export interface NodeIntent extends Omit<SurfaceIntent, 'sourceEventSeqs'> {
  readonly sourceEventSeqs?: Sources
}

type IntentOf<Type extends SessionEventType> = Type extends SurfaceEventType
  ? [intent: NodeIntent]
  : [intent?: EventIntent]

/** Carries a session's events to those who listen; the store is one. */
export interface SessionFeed {
  /** Gives what tells of the event, or undefined where nobody listens. A throw keeps the event out of the log. */
  prepare(event: SessionEvent): (() => void) | undefined
  /** No event is being told of any more. */
  settled(): void
}

export interface SessionOptions {
  /** The types that are known; the core's alone where absent. */
  readonly types?: EventTypes
  /** Why nothing may be appended. */
  readonly readOnly?: string
}

interface Origin extends Seed {
  readonly header: SessionHeader
  readonly types: EventTypes
  readonly readOnly: string | undefined
  readonly artifacts: SessionArtifacts
}

export interface BranchOptions {
  readonly meta?: Partial<Omit<SessionHeader, 'version' | 'id'>>
  /** Ends a turn that is open at the boundary. */
  readonly closeTurn?: boolean
}

/**
 * An append-only log of immutable events, and what follows from it.
 *
 * `append` commits at once, whoever calls it; those who listen hear of the events in the order of the log. A session is
 * detached until a store enters it.
 */
export class Session extends SessionView {
  readonly artifacts: SessionArtifacts
  /** Why nothing may be appended. */
  readonly readOnly: string | undefined
  readonly #unknown: UnknownEvent | undefined
  readonly #types: EventTypes
  readonly #delivery = new Delivery()
  #feed: SessionFeed | undefined
  #preparing = false

  private constructor(origin: Origin) {
    super(origin)
    this.artifacts = origin.artifacts
    this.readOnly = origin.readOnly ?? refusalOf(origin.header.id, origin.unknown)
    this.#unknown = origin.unknown
    this.#types = origin.types
  }

  /** A detached session. The seed stays the caller's: it is checked and copied. Throws for the first event that is not right. */
  static create(
    id: SessionId,
    seed?: readonly SessionEvent[],
    header?: SessionHeader,
    options: SessionOptions = {},
  ): Session {
    const { types = coreEventTypes, readOnly } = options
    const read = readSeed(seed ?? [], { types, copy: true })
    // What a living session wrote is known where it lives; only a stored log may hold what nobody knows.
    const known = { ...read, unknown: undefined }
    const artifacts = new SessionArtifacts()
    const session = new Session({ ...known, header: readHeader(id, header), types, readOnly, artifacts })
    if (seed !== undefined) session.#endSeed(Date.now())
    return session
  }

  /** The same from stored events, which now belong to the session: they are checked and frozen where they are. */
  static fromRestore(
    id: SessionId,
    seed: readonly SessionEvent[],
    header: SessionHeader,
    options: SessionOptions = {},
  ): Session {
    if (header === undefined) throw new TypeError('a stored session has a header')
    const { types = coreEventTypes, readOnly } = options
    const read = readSeed(seed, { types, copy: false })
    const artifacts = new SessionArtifacts()
    const session = new Session({ ...read, header: readHeader(id, header), types, readOnly, artifacts })
    session.#endSeed(Date.now())
    return session
  }

  /** A detached session that begins with the first `length` events of this one, which both share. */
  branch(id: SessionId, length: number, options: BranchOptions = {}): Session {
    const header = readHeader(id, { ...readHeader(id, undefined), ...options.meta })
    const unknown = this.#unknown !== undefined && this.#unknown.seq < length ? this.#unknown : undefined
    const flagged = this.flagged.filter(({ seq }) => seq < length)
    const entries = this.entries.copy(length)
    const surface = new SurfaceManager()
    for (const event of entries.ofTypes(surfaceEventTypes, length)) {
      const node = event as SurfaceEvent
      surface.commit(node, surface.spanOf(node.surfaceOp))
    }
    const artifacts = new SessionArtifacts(this.artifacts)
    const types = this.#types
    const child = new Session({
      entries,
      surface,
      flagged,
      unknown,
      header,
      types,
      readOnly: undefined,
      artifacts,
    })
    const time = options.closeTurn === true ? entries.at(length - 1)?.time : undefined
    child.#endSeed(time ?? Date.now())
    if (options.closeTurn === true) child.#closeTurn()
    return child
  }

  #endSeed(time: number): void {
    const { length } = this.entries
    if (this.readOnly !== undefined || this.entries.at(length - 1)?.type === 'session/end-seed') return
    const { parentSession, seedLength } = this.header
    const data = Object.freeze(
      parentSession !== undefined && seedLength === length ? { inherited: true } : {},
    )
    this.#push(Object.freeze({ type: 'session/end-seed', seq: length, time, data } as const), undefined)
  }

  #closeTurn(): void {
    this.#assertWritable('turn/end')
    for (const event of interruptedTurnClosers(this.events, { reason: 'forked' })) {
      this.#push(event, undefined)
    }
  }

  /**
   * Adds one event and gives it as it is in the log: a frozen copy of `data`, read once. Throws without a trace where
   * the data is not JSON or not of the type, the place on the surface is wrong, or a check of the dispatch refuses.
   */
  append<Type extends SessionEventType>(
    type: Type,
    data: SessionEventMap[Type],
    ...intent: IntentOf<Type>
  ): SessionEvent<Type>
  append(type: SessionEventType, data: unknown, intent?: Partial<NodeIntent>): SessionEvent {
    this.#assertWritable(type)
    if (type === 'session/end-seed') {
      throw new SessionError('INVALID_EVENT', 'event "session/end-seed": only a new session writes it')
    }
    const owned = this.#own(type, data)
    const { ignorable, surfaceOp, sourceEventSeqs } = intent ?? none
    const mark = ignorable === true || this.#types.isIgnorable(type) ? ignorableMark : undefined
    const seq = this.entries.length
    const time = Date.now()
    if (isSurfaceType(type)) {
      const sources = sourceEventSeqs === undefined ? undefined : readSources(sourceEventSeqs, seq)
      if (typeof sources === 'string') throw invalid(type, sources)
      const event = { type, seq, time, data: owned, ...mark, surfaceOp: readIntentOp(type, surfaceOp) }
      if (sources !== undefined) addSources(event, sources)
      const node = Object.freeze(event) as SurfaceEvent
      return this.#commit(node, this.manager.plan(node, sources))
    }
    if (surfaceOp !== undefined || sourceEventSeqs !== undefined) {
      throw invalid(type, 'the type is not on the surface')
    }
    const event =
      mark === undefined ? { type, seq, time, data: owned } : { type, seq, time, data: owned, ...mark }
    return this.#commit(Object.freeze(event) as SessionEvent, undefined)
  }

  /** `append('assistant/chunk', …)` for the loop: the fields of a chunk are known, so nothing is walked. */
  appendChunk(turn: number, step: number, chunk: StreamChunk): SessionEvent<'assistant/chunk'> {
    this.#assertWritable('assistant/chunk')
    if (!isPositive(turn) || !isPositive(step))
      throw invalid('assistant/chunk', `it is in step ${turn}.${step}`)
    const data = Object.freeze({ turn, step, chunk: adoptChunk(chunk) })
    const event = Object.freeze({
      type: 'assistant/chunk',
      seq: this.entries.length,
      time: Date.now(),
      data,
    } as const)
    const notify = this.#prepare(event)
    this.entries.pushChunk(event)
    this.#settle(notify)
    return event
  }

  /** The data as the log keeps it. Throws, naming the type and its plugin. */
  #own(type: string, data: unknown): unknown {
    let owned: unknown
    try {
      owned = adopt(data, 'data')
    } catch (cause) {
      const owner = this.#types.ownerOf(type)
      const of = owner === undefined ? '' : ` of plugin "${owner}"`
      throw new TypeError(`event "${type}"${of}: ${messageOf(cause)}`, {
        cause,
      })
    }
    this.#types.check(type, owned)
    return owned
  }

  #assertWritable(type: string): void {
    if (this.readOnly !== undefined) {
      throw new SessionError('READ_ONLY', `"${type}" cannot be appended: ${this.readOnly}`)
    }
    if (this.#preparing) {
      throw new SessionError('REENTRANT_APPEND', `"${type}" is refused: a check of another event appended it`)
    }
    this.#delivery.assertOpen(type)
  }

  #commit(event: SessionEvent, span: Span | undefined): SessionEvent {
    const notify = this.#prepare(event)
    this.#push(event, span)
    this.#settle(notify)
    return event
  }

  #push(event: SessionEvent, span: Span | undefined): void {
    this.entries.push(event)
    if (event.surfaceOp !== undefined) this.manager.commit(event as SurfaceEvent, span)
  }

  #prepare(event: SessionEvent): (() => void) | undefined {
    const feed = this.#feed
    if (feed === undefined) return undefined
    this.#preparing = true
    let prepared = false
    try {
      const notify = feed.prepare(event)
      prepared = true
      return notify
    } finally {
      this.#preparing = false
      if (!prepared && !this.#delivery.isRunning) feed.settled()
    }
  }

  #settle(notify: (() => void) | undefined): void {
    if (notify !== undefined) this.#delivery.run(notify)
    if (!this.#delivery.isRunning) this.#feed?.settled()
  }

  /** Whether an event is being added or told of. */
  get isBusy(): boolean {
    return this.#preparing || this.#delivery.isRunning
  }

  /** Used by stores. Gives what ends it. Throws SESSION_ALREADY_EXISTS while another store has the session. */
  attach(feed: SessionFeed): () => void {
    if (this.#feed !== undefined) {
      throw new SessionError('SESSION_ALREADY_EXISTS', `session "${this.id}" has been entered already`)
    }
    this.#feed = feed
    return () => {
      if (this.#feed === feed) this.#feed = undefined
    }
  }
}

const none: Partial<NodeIntent> = {}
const ignorableMark = { ignorable: true } as const

function readIntentOp(type: string, given: unknown): SurfaceOp {
  try {
    return readOp(given)
  } catch (error) {
    throw error instanceof TypeError ? invalid(type, error.message) : error
  }
}

function refusalOf(id: SessionId, unknown: UnknownEvent | undefined): string | undefined {
  if (unknown === undefined) return undefined
  const { type, seq, member } = unknown
  if (member !== undefined)
    return `session "${id}": event ${seq} ("${type}") has a member "${member}" that this version of dsh does not know; update it and open the session again`
  return `session "${id}" has events of type "${type}" (first: ${seq}), which no loaded plugin declares; load it and open the session again`
}

function invalid(type: string, problem: string): SessionError {
  return new SessionError('INVALID_EVENT', `event "${type}": ${problem}`)
}
