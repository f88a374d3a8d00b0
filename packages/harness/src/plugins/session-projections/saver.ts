import type { SessionEvent, SessionId } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import { messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { PersistenceNotice } from '../persistence/index.ts'
import type { SessionProjectionCache } from './cache.ts'

export interface SaverOptions {
  /** A session is stored after that many events at the latest, */
  readonly writeEveryEvents: number
  /** and after that many ms. */
  readonly writeIntervalMs: number
}

interface Unsaved {
  events: number
  timer: NodeJS.Timeout | undefined
  running: Promise<void> | undefined
  /** Something came while a write was running. */
  isDue: boolean
}

/**
 * Stores the values of live sessions: after each turn, when a session ends, and now and then in between.
 *
 * A write that fails is told by `problem` and tried again with the next one: the log has everything.
 */
export class ProjectionSaver {
  readonly #cache: SessionProjectionCache
  readonly #options: SaverOptions
  readonly #unsaved = new Map<Session, Unsaved>()
  readonly #ending = new Set<Promise<void>>()
  /** Sessions whose log could not be finished. */
  readonly #unfinished = new Set<SessionId>()
  #problem: string | undefined

  constructor(cache: SessionProjectionCache, options: SaverOptions) {
    this.#cache = cache
    this.#options = options
  }

  /** What the last write failed at. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Hears of everything until the plugin of `ctx` ends, which waits for what is being written. */
  follow(ctx: Context): void {
    const global = { global: true }
    ctx.effect(() => () => this.#finish(), 'unsaved projections')
    ctx.on('session/event', (session, event) => this.#touch(session, event), global)
    ctx.on('session/disposed', session => this.#end(ctx, session), global)
    ctx.on('persistence/notice', ({ id, code }: PersistenceNotice) => {
      if (code === 'RETIRE_FAILED' && id !== undefined) this.#unfinished.add(id)
    })
  }

  #touch(session: Session, event: SessionEvent): void {
    let unsaved = this.#unsaved.get(session)
    if (unsaved === undefined) {
      unsaved = { events: 0, timer: undefined, running: undefined, isDue: false }
      this.#unsaved.set(session, unsaved)
    }
    unsaved.events += 1
    if (event.type === 'turn/end' || unsaved.events >= this.#options.writeEveryEvents)
      this.#save(session, unsaved)
    else if (unsaved.timer === undefined) {
      const { writeIntervalMs } = this.#options
      unsaved.timer = setTimeout(() => this.#save(session, unsaved), writeIntervalMs).unref()
    }
  }

  #save(session: Session, unsaved: Unsaved): void {
    clear(unsaved)
    if (unsaved.running !== undefined) {
      unsaved.isDue = true
      return
    }
    unsaved.events = 0
    unsaved.isDue = false
    unsaved.running = this.#attempt(() => this.#cache.write(session)).then(() => {
      unsaved.running = undefined
      if (unsaved.isDue && this.#unsaved.get(session) === unsaved) this.#save(session, unsaved)
    })
  }

  #end(ctx: Context, session: Session): void {
    const unsaved = this.#unsaved.get(session)
    if (unsaved === undefined) return
    this.#unsaved.delete(session)
    clear(unsaved)
    const end = this.#storeEnd(ctx, session, unsaved).finally(() => this.#ending.delete(end))
    this.#ending.add(end)
  }

  /** The session is not live any more; its store is writing the rest of the log. */
  async #storeEnd(ctx: Context, session: Session, { running, events }: Unsaved): Promise<void> {
    await running
    if (events === 0) return
    await this.#attempt(async () => {
      // Waits until the log is given back.
      await ctx.get('sessionPersistence')?.readFrom(session.id, session.length)
      if (this.#unfinished.delete(session.id)) return
      await this.#cache.storeAt(session, session.length)
    })
  }

  async #finish(): Promise<void> {
    const last = [...this.#unsaved].map(async ([session, unsaved]) => {
      clear(unsaved)
      await unsaved.running
      if (unsaved.events > 0) await this.#attempt(() => this.#cache.write(session))
    })
    this.#unsaved.clear()
    await Promise.all([...last, ...this.#ending])
  }

  async #attempt(write: () => Promise<void>): Promise<void> {
    try {
      await write()
      this.#problem = undefined
    } catch (error) {
      this.#problem = messageOf(error)
    }
  }
}

function clear(unsaved: Unsaved): void {
  clearTimeout(unsaved.timer)
  unsaved.timer = undefined
}
