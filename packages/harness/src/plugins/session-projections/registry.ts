import type { JsonValue, SessionEvent, SessionEventType } from '@dsh/protocol'
import type { SessionView } from '../../core/session/index.ts'
import { Service } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import { ProjectionError } from './errors.ts'
import { checkUnit, snapshotOf, viewOf } from './projection.ts'
import type {
  AnyUnit,
  ProjectionKey,
  ProjectionSnapshot,
  ProjectionStates,
  ProjectionUnit,
} from './projection.ts'

/** Hears of a value that changed, after the event that changed it. */
export type ProjectionListener = (session: SessionView, key: string, value: JsonValue, seq: number) => void

interface Registration {
  readonly unit: AnyUnit
}

interface Watcher {
  readonly listener: ProjectionListener
  readonly report: (error: unknown) => void
}

/**
 * `ctx.sessionProjections`: the values that follow from a session's log, by key, now and after any event.
 *
 * A unit costs nothing before somebody asks for it. What a method registers belongs to the caller.
 */
export class SessionProjections extends Service {
  /** Every registration of a key, in order; the first one counts. */
  private readonly registered = new Map<string, Registration[]>()
  private readonly watchers = new Set<Watcher>()
  private readonly own: Context
  /** What listens to events, while somebody watches. */
  private readonly listening: { stop?: Disposer | undefined } = {}

  constructor(ctx: Context) {
    super(ctx, 'sessionProjections')
    this.own = ctx
  }

  /**
   * Adds a unit as long as the caller is there. The same key may be registered more than once with the same version; it
   * is there until the last one goes. Throws INVALID_PROJECTION, or PROJECTION_CONFLICT for another version.
   */
  register<State, Type extends SessionEventType>(unit: ProjectionUnit<State, Type>): Disposer {
    const { registered } = this
    checkUnit(unit)
    const registration = { unit: unit as unknown as AnyUnit }
    return this.ctx.effect(() => add(registered, registration), `projection ${unit.key}`)
  }

  /** Those that count, in the order in which their keys came. */
  get units(): readonly AnyUnit[] {
    return [...this.registered.values()].flatMap(([first]) => (first === undefined ? [] : [first.unit]))
  }

  /** All values after the last event. */
  snapshot(session: SessionView): ProjectionSnapshot {
    return snapshotOf(this.units, session.length - 1, ({ fold }) => session.fold(fold))
  }

  /** All values right after the event `seq`; those of an empty log for -1. Throws a RangeError where there is no such event. */
  at(session: SessionView, seq: number): ProjectionSnapshot {
    if (!Number.isSafeInteger(seq) || seq < -1 || seq >= session.length) {
      throw new RangeError(`session "${session.id}" has events 0 to ${session.length - 1}, not ${seq}`)
    }
    return snapshotOf(this.units, seq, ({ fold }) => session.fold(fold, { before: seq + 1 }))
  }

  /** The state behind a value; undefined where nobody registered the key. Throws what the fold throws. */
  stateOf<Key extends ProjectionKey>(session: SessionView, key: Key): ProjectionStates[Key] | undefined
  stateOf(session: SessionView, key: string): unknown
  stateOf(session: SessionView, key: string): unknown {
    const [first] = this.registered.get(key) ?? []
    return first === undefined ? undefined : session.fold(first.unit.fold)
  }

  /** Tells `listener` of every change in a live session, in the order of the log, as long as the caller is there. */
  onChanged(listener: ProjectionListener): Disposer {
    const { fiber } = this.ctx
    const watcher = { listener, report: (error: unknown) => fiber.report(error, 'projection changed') }
    return this.ctx.effect(() => {
      this.watchers.add(watcher)
      this.listening.stop ??= this.own.on('session/event', (...heard) => this.tell(...heard), {
        global: true,
      })
      return () => {
        this.watchers.delete(watcher)
        if (this.watchers.size > 0) return
        this.listening.stop?.()
        this.listening.stop = undefined
      }
    }, 'projection listener')
  }

  private tell(session: SessionView, event: SessionEvent): void {
    for (const unit of this.units) {
      if (!(unit.fold.types as readonly string[]).includes(event.type)) continue
      this.contain(() => this.tellOf(unit, session, event.seq))
    }
  }

  private tellOf(unit: AnyUnit, session: SessionView, seq: number): void {
    const before = session.fold(unit.fold, { before: seq })
    const after = session.fold(unit.fold, { before: seq + 1 })
    if (before === after) return
    const value = viewOf(unit, after)
    for (const { listener, report } of this.watchers) {
      this.contain(() => listener(session, unit.key, value, seq), report)
    }
  }

  private contain(act: () => void, report?: (error: unknown) => void): void {
    try {
      act()
    } catch (error) {
      if (report === undefined) this.own.fiber.report(error, 'projection')
      else report(error)
    }
  }
}

function add(registered: Map<string, Registration[]>, registration: Registration): Disposer {
  const { key, stateVersion } = registration.unit
  const others = registered.get(key) ?? []
  const version = others[0]?.unit.stateVersion ?? stateVersion
  if (version !== stateVersion) {
    const problem = `its state has version ${version} already, not ${stateVersion}`
    throw new ProjectionError('PROJECTION_CONFLICT', `projection "${key}": ${problem}`)
  }
  registered.set(key, [...others, registration])
  return () => {
    const rest = (registered.get(key) ?? []).filter(other => other !== registration)
    if (rest.length > 0) registered.set(key, rest)
    else registered.delete(key)
  }
}
