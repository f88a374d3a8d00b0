import type { SessionEvent, SessionId } from '@dsh/protocol'
import { SessionStore } from '../../core/session/index.ts'
import type { Session } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import type { Fiber } from '../../kernel/index.ts'
import { mountPersistence } from '../../plugins/persistence/index.ts'
import type { Medium, PersistenceNotice, Timers } from '../../plugins/persistence/index.ts'
import { logOf } from '../given.ts'
import type { Draft } from '../given.ts'

/** One place that keeps logs, and ways to open it; each opening is as if another program made it. */
export interface StorePlace {
  open(): Medium
  /** By which a holder is named. */
  readonly pid: number
  /** Makes the stored event `seq` unreadable, and of the others at most those of the same write. */
  damage?(id: SessionId, seq: number): Promise<void> | void
}

/** What a medium must do, by the sentence that says it. */
export type StoreCases = Readonly<Record<string, (place: StorePlace) => Promise<void>>>

/** A program with live sessions and the store, whose clock the test moves. */
export interface StoreProgram {
  readonly ctx: Context
  readonly notices: readonly PersistenceNotice[]
  readonly clock: ManualTimers
  /** Disposes the store's plugin alone. */
  unmount(): Promise<void>
  mount(): Promise<void>
  stop(): Promise<void>
}

interface ManualTimers extends Timers {
  /** Ends every window that is open. */
  expire(): void
  /** Lets everybody look who looks from time to time. */
  look(): void
  /** Lets the store clear up. */
  sweep(): void
}

export async function startProgram(place: Pick<StorePlace, 'open'>): Promise<StoreProgram> {
  const ctx = new Context()
  const clock = manualTimers()
  const notices: PersistenceNotice[] = []
  await ctx.plugin(SessionStore)
  ctx.on('persistence/notice', notice => notices.push(notice))
  const store = {
    name: 'store',
    inject: ['sessions'],
    apply: (own: Context) =>
      mountPersistence(own, place.open(), { writeBatchMaxDelayMs: windowMs, timers: clock }),
  }
  let fiber: Fiber = ctx.plugin(store)
  await fiber
  return {
    ctx,
    notices,
    clock,
    unmount: () => fiber.dispose(),
    async mount() {
      fiber = ctx.plugin(store)
      await fiber
    },
    stop: () => ctx.dispose(),
  }
}

const windowMs = 200
const lookMs = 500
const sweepMs = 1000

function manualTimers(): ManualTimers {
  const waiting = new Map<() => void, number>()
  const fire = (length: number): void => {
    const ended = [...waiting].filter(([, ms]) => ms === length)
    for (const [callback] of ended) waiting.delete(callback)
    for (const [callback] of ended) callback()
  }
  return {
    set(callback, ms) {
      waiting.set(callback, ms)
      return callback
    },
    clear: timer => void waiting.delete(timer as () => void),
    expire: () => fire(windowMs),
    look: () => fire(lookMs),
    sweep: () => fire(sweepMs),
  }
}

/** Appends drafts as a live session would. */
export function append(session: Session, ...drafts: readonly Draft[]): void {
  const put = session.append.bind(session) as (type: string, data: unknown, intent?: unknown) => void
  for (const { type, data, seq: _, time: __, ...intent } of logOf(...drafts)) put(type, data, intent)
}

/** What another program finds. */
export async function storedEvents(place: StorePlace, id: SessionId): Promise<readonly SessionEvent[]> {
  return (await place.open().read(id))?.events ?? []
}
