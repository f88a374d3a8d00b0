import type { SessionHeader, SessionId } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import { KeyedLocks, Service } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { snapshotOf } from './projection.ts'
import type { AnyUnit, ProjectionSnapshot } from './projection.ts'
import type { SessionProjections } from './registry.ts'
import type { RowFiles } from './row-files.ts'
import { ColdStates, readRows, rowsOf, textOfRows } from './rows.ts'
import type { StoredRows } from './rows.ts'

export interface CacheOptions {
  readonly projections: SessionProjections
  /** Opened when the first row is read or written. */
  readonly files: () => Promise<RowFiles>
}

/** A stored session, and its mark where that is known. */
export interface ColdSession {
  readonly header: SessionHeader
  /** The one that `listSnapshots` gives: where it is still the same, the log is not read. */
  readonly revision?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * `ctx.sessionProjectionCache`: the values of sessions that are not live, without reading their logs again.
 *
 * It is a copy of what the logs say and never ahead of them: a row is stored after its events are. What is missing,
 * broken, too big, of another version or of another log is worked out anew.
 */
export class SessionProjectionCache extends Service {
  private readonly own: Context
  private readonly options: CacheOptions
  private readonly locks = new KeyedLocks<SessionId>()

  constructor(ctx: Context, options: CacheOptions) {
    super(ctx, 'sessionProjectionCache')
    this.own = ctx
    this.options = options
  }

  /** What is stored of a session. Its log is not looked at: there may be more by now. Undefined where nothing fits. */
  async cachedSnapshot(header: SessionHeader): Promise<ProjectionSnapshot | undefined> {
    const units = [...this.options.projections.units]
    const stored = await this.read(header)
    const states = stored === undefined ? undefined : ColdStates.fromRows(units, stored)
    return states === undefined ? undefined : snapshotOfStates(units, states)
  }

  /** The values after the last event of a log, reading only what came since they were stored. A live session tells them itself. */
  async coldSnapshot(session: ColdSession): Promise<ProjectionSnapshot> {
    const { header, revision } = session
    const live = this.own.sessions.get(header.id)
    if (live !== undefined) return this.options.projections.snapshot(live)
    const units = [...this.options.projections.units]
    const stored = await this.read(header)
    const states = stored === undefined ? undefined : ColdStates.fromRows(units, stored)
    if (states !== undefined && revision !== undefined && stored?.revision === revision)
      return snapshotOfStates(units, states)
    const isNew = states === undefined || !(await this.catchUp(states, session))
    const now = isNew ? ColdStates.fromStart(units, header) : states
    if (isNew) await this.readAll(now, session)
    const { seq, time } = now
    const rows = rowsOf(units, unit => now.stateOf(unit))
    // It is only a copy: whoever asked has the values.
    await this.store({ ...identityOf(header), seq, time, revision, rows }).catch(() => undefined)
    return snapshotOfStates(units, now)
  }

  /** Makes the session's log durable, and then stores the values as of then. Rejects where either cannot be done. */
  async write(session: Session): Promise<void> {
    const { length } = session
    if (await this.own.sessions.flush(session)) await this.storeAt(session, length)
  }

  /** Stores the values after the first `length` events, which must be durable. */
  async storeAt(session: Session, length: number): Promise<void> {
    const seq = length - 1
    const stateOf = ({ fold }: AnyUnit): unknown => session.fold(fold, { before: length })
    const rows = rowsOf(this.options.projections.units, stateOf)
    await this.store({ ...identityOf(session.header), seq, time: session.at(seq)?.time ?? 0, rows })
  }

  /** Takes away what is stored of a session. */
  async forget(id: SessionId): Promise<void> {
    await (await this.options.files()).forget(id)
  }

  /** Takes away what is stored of all sessions but these. */
  async retain(ids: Iterable<SessionId>): Promise<void> {
    await (await this.options.files()).retain(ids)
  }

  private async read(header: SessionHeader): Promise<StoredRows | undefined> {
    const text = await (await this.options.files()).read(header.id)
    return text === undefined ? undefined : readRows(text, header)
  }

  /** In the order of the calls: what is newer stays. */
  private store(rows: StoredRows): Promise<void> {
    const id = rows.id as SessionId
    return this.locks.run(id, async () => (await this.options.files()).write(id, textOfRows(rows)))
  }

  /** Applies what was added. False where the log does not have the event that the states include last. */
  private async catchUp(states: ColdStates, session: ColdSession): Promise<boolean> {
    if (states.seq < 0) return false
    const { seq: last, time } = states
    let isThere = false
    for await (const event of this.eventsFrom(last, session)) {
      if (event.seq === last) {
        if (event.time !== time) return false
        isThere = true
      } else if (!isThere) return false
      else states.apply(event, { hidden: this.own.sessions.isFlagged(event) })
    }
    return isThere
  }

  private async readAll(states: ColdStates, session: ColdSession): Promise<void> {
    for await (const event of this.eventsFrom(0, session))
      states.apply(event, { hidden: this.own.sessions.isFlagged(event) })
  }

  /** The events that belong to the Session: those before the first gap. */
  private async *eventsFrom(fromSeq: number, { header, signal }: ColdSession) {
    const batches = this.own.sessionPersistence.stream(header.id, { fromSeq, signal })
    for await (const { gap, events } of batches) {
      if (gap !== undefined) return
      yield* events
    }
  }
}

function snapshotOfStates(units: readonly AnyUnit[], states: ColdStates): ProjectionSnapshot {
  return snapshotOf(units, states.seq, unit => states.stateOf(unit))
}

function identityOf({ id, createdAt, cwd }: SessionHeader): Pick<StoredRows, 'id' | 'createdAt' | 'cwd'> {
  return { id, createdAt, ...(cwd === undefined ? {} : { cwd }) }
}
