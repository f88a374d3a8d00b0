import { messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { markRunningCalls, raiseBarriers } from './barriers.ts'
import { Coordinator } from './coordinator.ts'
import type { Medium } from './medium.ts'
import type { PersistenceNotice } from './notice.ts'
import { Persistence } from './service.ts'
import type { Timers } from './write-behind.ts'

export interface PersistenceOptions {
  /** How long the first event of a batch waits for others, in ms. */
  readonly writeBatchMaxDelayMs: number
  /** How many sessions that were prepared and given back untouched are kept for the next who asks. Default 5. */
  readonly preparedSessionCacheSize?: number
  readonly timers?: Timers
}

/** Long enough not to be in the way of a start. */
const sweepDelayMs = 1000

const systemTimers: Timers = {
  set: (callback, ms) => setTimeout(callback, ms),
  clear: timer => clearTimeout(timer as NodeJS.Timeout),
}

/**
 * Gives the plugin of `ctx` a store: the service, the writing of all live sessions, and the barriers. When the plugin
 * ends, what is left is written, and its disposal fails where that cannot be done. The plugin injects `sessions`.
 */
export function mountPersistence(ctx: Context, medium: Medium, options: PersistenceOptions): void {
  const timers = options.timers ?? systemTimers
  const notice = (told: PersistenceNotice): void => ctx.emit('persistence/notice', told)
  const coordinator = new Coordinator({
    medium,
    sessions: ctx.sessions,
    delayMs: options.writeBatchMaxDelayMs,
    timers,
    preparedSessionCacheSize: options.preparedSessionCacheSize ?? 5,
    notice,
  })
  // First, so that it is undone last: when nothing can be added any more.
  ctx.effect(() => () => coordinator.shutDown(), `close ${medium.name}`)
  ctx.effect(() => sweepLater(medium, timers, notice), `sweep ${medium.name}`)
  const global = { global: true }
  ctx.on('session/event', session => coordinator.touch(session), global)
  ctx.on('session/flush', session => coordinator.flush(session), global)
  ctx.on('session/created', session => coordinator.claim(session), global)
  ctx.on('session/disposed', session => coordinator.retire(session), global)
  raiseBarriers(ctx, coordinator)
  for (const session of ctx.sessions.list()) {
    coordinator.claim(session)
    markRunningCalls(session)
  }
  new Persistence(ctx, coordinator, timers)
}

/** What crashed programs left is no hurry, and no reason to fail or to stay alive. */
function sweepLater(medium: Medium, timers: Timers, notice: (notice: PersistenceNotice) => void): () => void {
  let isOver = false
  const tell = (error: unknown): void => {
    if (isOver) return
    const message = `${medium.name} could not remove what crashed programs left: ${messageOf(error)}`
    notice({ code: 'SWEEP_FAILED', message })
  }
  const timer = timers.set(() => void medium.sweep?.().catch(tell), sweepDelayMs)
  ;(timer as { unref?: () => void } | undefined)?.unref?.()
  return () => {
    isOver = true
    timers.clear(timer)
  }
}
