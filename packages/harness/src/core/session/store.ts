import { sessionFormatVersion, SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionEventType, SessionHeader } from '@dsh/protocol'
import { Service } from '../../kernel/index.ts'
import type { Carrier, Context, Disposer } from '../../kernel/index.ts'
import { scopeOf, scopeTarget } from '../scope/index.ts'
import { SessionError, SessionForkError } from './errors.ts'
import { EventTypes } from './event-types.ts'
import type { EventTypeDefinition } from './event-types.ts'
import { branchAt } from './fork.ts'
import type { ForkOptions } from './fork.ts'
import { Session } from './log.ts'
import { Publication } from './publication.ts'
import { problemOfEvent } from './seed.ts'

export interface CreateSessionOptions {
  readonly seed?: readonly SessionEvent[]
  readonly meta?: Partial<Omit<SessionHeader, 'version' | 'id'>>
}

export interface PrepareSessionOptions extends Omit<CreateSessionOptions, 'meta'> {
  readonly meta?: Partial<SessionHeader>
  /** 'persistence': the seed was stored and now belongs to the session, which is read-only where it holds unknown types. */
  readonly seedSource?: 'persistence'
  /** Why nothing may be appended. */
  readonly readOnly?: string
}

interface Place {
  /** Who hears of the session: those in the scope it was entered from, and above. */
  readonly carrier: Carrier
  readonly detach: () => void
}

/** The sessions that live here, by id. What a method registers belongs to the caller. */
export class SessionStore extends Service {
  private readonly own: Context
  private readonly types = new EventTypes()
  private readonly places = new WeakMap<Session, Place>()
  private readonly publication: Publication<SessionId, Session>
  private readonly counter = { next: 1 }

  constructor(ctx: Context) {
    super(ctx, 'sessions')
    this.own = ctx
    this.publication = new Publication({
      idOf: session => session.id,
      announce: session => ctx.veto(this.carrierOf(session), 'session/created', session),
      left: session => this.places.get(session)?.detach(),
      disposed: session => this.tellDisposed(session),
      isBusy: session => session.isBusy,
      duplicate: id => new SessionError('SESSION_ALREADY_EXISTS', `session "${id}" exists already`),
    })
    ctx.effect(() => () => this.publication.leaveAll(), 'live sessions')
  }

  /** Says what events of a type hold, for as long as the caller is there. Throws DUPLICATE_EVENT_TYPE. */
  registerEventType<Type extends SessionEventType>(definition: EventTypeDefinition<Type>): Disposer {
    const { types } = this
    const { fiber } = this.ctx
    return this.ctx.effect(() => types.add(definition, fiber.name), `event type ${definition.type}`)
  }

  /** Another number after each change of the types that are known. */
  get eventTypesVersion(): number {
    return this.types.version
  }

  /** What is wrong with a stored event that stands at `seq`, looked at alone; freezes it. Undefined where it is right. */
  problemOf(event: SessionEvent, seq: number): string | undefined {
    return problemOfEvent(event, seq, this.types)
  }

  /** Whether the plugin that declares the type of a stored event refuses its data, so that no fold sees it. */
  isFlagged({ type, data }: SessionEvent): boolean {
    if (this.types.ownerOf(type) === undefined) return false
    try {
      this.types.check(type, data)
      return false
    } catch {
      return true
    }
  }

  /** A live session, until the caller's plugin ends. Without an id it is `session-<n>`. */
  create(id?: SessionId, options: CreateSessionOptions = {}): Session {
    return this.publish(this.prepare(id, options))
  }

  /** A session nobody can see yet. */
  prepare(id: SessionId = this.freeId(), options: PrepareSessionOptions = {}): Session {
    const { seed, meta, seedSource, readOnly } = options
    const rest = { types: this.types, ...(readOnly === undefined ? {} : { readOnly }) }
    const header = { version: sessionFormatVersion, id, createdAt: Date.now(), ...meta }
    return seedSource === 'persistence'
      ? Session.fromRestore(id, seed ?? [], header, rest)
      : Session.create(id, seed, header, rest)
  }

  /** Makes the session findable, without a sound. What it gives takes exactly this entry away again, once. */
  enter(session: Session): Disposer {
    const { own, publication } = this
    const carrier = scopeTarget(scopeOf(this.ctx))
    const leave = publication.enter(session)
    try {
      const detach = session.attach({
        prepare: event => own.prepareEmit(carrier, 'session/event', session, event),
        settled: () => publication.settle(session),
      })
      this.places.set(session, { carrier, detach })
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }

  /** Emits 'session/created', once; what a listener throws escapes, and the one who entered the session detaches it. */
  announce(session: Session): void {
    this.publication.announce(session)
  }

  /**
   * Makes everything appended so far durable. Waits for all who take part, then rejects with the first failure, in the
   * order of registration. Resolves to whether anybody took part. Rejects with SESSION_NOT_LIVE.
   */
  async flush(session: Session): Promise<boolean> {
    if (!this.publication.isAnnounced(session)) {
      throw new SessionError('SESSION_NOT_LIVE', `session "${session.id}" is not live here`)
    }
    // Those who store the log have not heard of every event yet; they have once the running code returns.
    if (session.isBusy) await Promise.resolve()
    try {
      return (await this.own.parallel(this.carrierOf(session), 'session/flush', session)) > 0
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error
    }
  }

  /**
   * Makes a session known while `job` adds to it, and what was added durable. One that is live already stays so; any
   * other leaves again, also where the job, a listener or the flush fails.
   */
  async whileLive(session: Session, job: (session: Session) => void): Promise<void> {
    if (this.get(session.id) === session) {
      job(session)
      await this.flush(session)
      return
    }
    const leave = this.enter(session)
    try {
      this.announce(session)
      job(session)
      await this.flush(session)
    } finally {
      leave()
    }
  }

  get(id: SessionId): Session | undefined {
    return this.publication.get(id)
  }

  /** In the order they entered. */
  list(): Session[] {
    return this.publication.list()
  }

  /**
   * A live session that begins with the events of `source` up to `boundary`, its last by default. Files are not
   * copied: what both sessions write in one directory, both see. Throws a SessionForkError; inside an open turn
   * OPEN_TURN, unless the options say that the child ends that turn.
   */
  fork(
    source: Session | SessionId,
    boundary?: number,
    childId?: SessionId,
    options: ForkOptions = {},
  ): Session {
    if (childId !== undefined && this.get(childId) !== undefined) {
      throw new SessionForkError('SESSION_ALREADY_EXISTS', `session "${childId}" exists already`)
    }
    const parent = this.liveSource(source)
    return this.publish(branchAt(parent, boundary, childId ?? this.freeId(), options))
  }

  private liveSource(source: Session | SessionId): Session {
    const id = typeof source === 'string' ? source : source.id
    const live = this.get(id)
    if (live === undefined)
      throw new SessionForkError('SESSION_NOT_FOUND', `session "${id}" is not live here`)
    if (typeof source === 'string' || source === live) return live
    throw new SessionForkError('SESSION_NOT_LIVE', `session "${id}" is live as another object`)
  }

  private publish(session: Session): Session {
    const enter = (): Disposer => this.enter(session)
    const announce = (): void => this.announce(session)
    this.ctx.effect(function* () {
      yield enter()
      announce()
    }, `session ${session.id}`)
    return session
  }

  private freeId(): SessionId {
    const { counter } = this
    while (this.get(SessionId(`session-${counter.next}`)) !== undefined) counter.next++
    return SessionId(`session-${counter.next++}`)
  }

  private carrierOf(session: Session): Carrier {
    return this.places.get(session)?.carrier ?? scopeTarget(undefined)
  }

  /** The end of a session is a fact that nobody refuses. */
  private tellDisposed(session: Session): void {
    try {
      this.own.emit(this.carrierOf(session), 'session/disposed', session)
    } catch (error) {
      this.own.fiber.report(error, 'session/disposed')
    }
  }
}
