import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import { Service } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { createPreparation, turnCursor } from '../../core/session/index.ts'
import type {
  FollowOptions,
  MediumReport,
  PrepareOptions,
  RawLog,
  RepairResult,
  Session,
  SessionPersistence,
  SessionPreparation,
  SessionRow,
  SessionSnapshot,
  StoredBatch,
  StoredContent,
  StoredSession,
  StreamOptions,
} from '../../core/session/index.ts'
import { checkedBatches, liveBatches } from './batches.ts'
import type { Coordinator } from './coordinator.ts'
import { notStored, PersistenceError } from './errors.ts'
import { followSession } from './follow.ts'
import type { FollowHost } from './follow.ts'
import { viewOf } from './restore.ts'
import { readSteadily } from './steady-read.ts'
import type { Timers } from './write-behind.ts'

/** Why nothing can be appended to a view of a session that nothing is wrong with. */
export const viewText = 'it was opened to be looked at'

/** `ctx.sessionPersistence`: what is live is read from its session, all else from the medium. */
export class Persistence extends Service implements SessionPersistence {
  private readonly own: Context
  private readonly coordinator: Coordinator
  private readonly timers: Timers
  readonly supportsRawArtifacts: boolean

  constructor(ctx: Context, coordinator: Coordinator, timers: Timers) {
    super(ctx, 'sessionPersistence')
    this.own = ctx
    this.coordinator = coordinator
    this.timers = timers
    this.supportsRawArtifacts = coordinator.medium.readRaw !== undefined
  }

  locate(header: SessionHeader): string | undefined {
    return this.coordinator.medium.locate(header)
  }

  create(header: SessionHeader): Promise<void> {
    return this.coordinator.create(header)
  }

  append(id: SessionId, events: readonly SessionEvent[], contents?: readonly StoredContent[]): Promise<void> {
    return this.coordinator.append(id, events, contents)
  }

  async prepare(id: SessionId, signal?: AbortSignal, options?: PrepareOptions): Promise<SessionPreparation> {
    const { coordinator } = this
    const { reservation, notices } = await coordinator.reserve(id, { ...options, signal })
    return createPreparation(reservation.session, () => void coordinator.release(reservation), notices)
  }

  async load(id: SessionId, signal?: AbortSignal): Promise<StoredSession> {
    const live = await this.coordinator.liveSession(id, signal)
    if (live !== undefined) return this.loadLive(live)
    const { reservation } = await this.coordinator.reserve(id, { signal })
    const { session, length } = reservation
    await this.coordinator.release(reservation)
    return { header: session.header, events: session.events.slice(0, length) }
  }

  async inspect(id: SessionId, signal?: AbortSignal): Promise<StoredSession> {
    const live = await this.coordinator.liveSession(id, signal)
    if (live !== undefined) return { header: live.header, events: live.events }
    const log = await readSteadily(this.coordinator.medium, id, { signal })
    if (log === undefined) throw notStored(id)
    return viewOf(log, this.coordinator.sessions)
  }

  async view(id: SessionId, signal?: AbortSignal): Promise<Session> {
    return this.viewOf(await this.inspect(id, signal))
  }

  viewOf({ header, events, readOnly = viewText }: StoredSession): Session {
    const { id } = header
    const { medium, sessions } = this.coordinator
    const session = sessions.prepare(id, { seed: events, meta: header, seedSource: 'persistence', readOnly })
    const put = (): Promise<never> => Promise.reject(new PersistenceError('SESSION_READ_ONLY', readOnly))
    session.artifacts.attach({ put, get: sha256 => medium.artifact(id, sha256) })
    return session
  }

  async readFrom(id: SessionId, fromSeq: number, signal?: AbortSignal): Promise<StoredSession> {
    assertSeq(fromSeq)
    const live = await this.coordinator.liveSession(id, signal)
    if (live !== undefined) return { header: live.header, events: [...live.since(fromSeq)] }
    const log = await readSteadily(this.coordinator.medium, id, { fromSeq, signal })
    if (log === undefined) throw notStored(id)
    const { header, events, gaps, holder } = log
    return {
      header,
      events,
      ...(gaps.length === 0 ? {} : { gaps }),
      ...(holder === undefined ? {} : { holder }),
    }
  }

  async *stream(id: SessionId, options: StreamOptions = {}): AsyncGenerator<StoredBatch> {
    assertSeq(options.fromSeq ?? 0)
    const live = await this.coordinator.liveSession(id, options.signal)
    yield* live === undefined ? this.storedBatches(id, options) : liveBatches(live, options)
  }

  async *follow(id: SessionId, options: FollowOptions = {}): AsyncGenerator<SessionEvent> {
    assertSeq(options.fromSeq ?? 0)
    const { coordinator, timers } = this
    const host: FollowHost = {
      medium: coordinator.medium,
      timers,
      live: each => coordinator.trackedSession(each),
      onChange: (each, listener) => coordinator.onChange(each, listener),
      stored: (each, rest) => this.storedBatches(each, rest),
      assertOpen: () => coordinator.assertOpen(),
    }
    yield* followSession(id, host, options)
  }

  readRaw(id: SessionId, signal?: AbortSignal): Promise<RawLog | undefined> {
    const { medium } = this.coordinator
    if (medium.readRaw !== undefined) return medium.readRaw(id, signal)
    return Promise.reject(new PersistenceError('NOT_SUPPORTED', `${medium.name} keeps no files`))
  }

  async remove(id: SessionId): Promise<boolean> {
    const isRemoved = await this.coordinator.remove(id)
    // What is kept beside a log is derived from it: that it could not be removed is no failure of the removal.
    if (isRemoved)
      await this.own
        .parallel('persistence/removed', id)
        .catch((error: unknown) => this.own.fiber.report(error, 'persistence/removed'))
    return isRemoved
  }

  async verify(id: SessionId, signal?: AbortSignal): Promise<MediumReport> {
    const { coordinator } = this
    const live = await coordinator.liveSession(id, signal)
    if (live !== undefined) await coordinator.flush(live)
    return coordinator.medium.verify(id, signal)
  }

  repair(id: SessionId): Promise<RepairResult> {
    return this.coordinator.repair(id)
  }

  list(signal?: AbortSignal): Promise<readonly SessionRow[]> {
    return this.coordinator.medium.list(signal)
  }

  async listSnapshots(signal?: AbortSignal): Promise<readonly SessionSnapshot[]> {
    const rows = await this.coordinator.medium.list(signal)
    return rows.flatMap(row =>
      'header' in row && row.revision !== undefined ? [{ header: row.header, revision: row.revision }] : [],
    )
  }

  private storedBatches(id: SessionId, options: StreamOptions): AsyncIterable<StoredBatch> {
    const { medium, sessions } = this.coordinator
    const batches = medium.stream(id, options)
    return options.isUnchecked === true ? batches : checkedBatches(batches, sessions)
  }

  private async loadLive(session: Session): Promise<StoredSession> {
    await this.coordinator.flush(session)
    if (session.fold(turnCursor).openTurn !== undefined)
      throw new PersistenceError('SESSION_LIVE', `session "${session.id}" is in the middle of a turn`)
    return { header: session.header, events: session.events }
  }
}

function assertSeq(fromSeq: number): void {
  if (Number.isSafeInteger(fromSeq) && fromSeq >= 0) return
  throw new RangeError(`fromSeq is ${fromSeq}, expected 0 or more`)
}
