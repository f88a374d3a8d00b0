import type { AsyncDisposer, PluginObject } from '../../kernel/index.ts'
import type { RequestErrorAction } from '../../core/agent/index.ts'
import { retryEvents } from './log.ts'
import { recover } from './recovery.ts'

export * from './events.ts'
export { retryChains } from './log.ts'
export type { RetryChain } from './log.ts'

/**
 * Sends failed model requests again, in the same step, as the policy of their route says. Each retry is in the log
 * before its wait begins. Unloading ends all waits, and waits itself until nothing of them runs any more.
 */
export const retry: PluginObject = {
  name: 'retry',
  inject: ['sessions'],
  apply(ctx) {
    const unloading = new AbortController()
    const running = new Set<Promise<RequestErrorAction>>()
    for (const definition of retryEvents) ctx.sessions.registerEventType(definition)
    ctx.effect(
      (): AsyncDisposer => async () => {
        unloading.abort()
        await Promise.allSettled(running)
      },
      'recoveries',
    )
    const report = (error: unknown): void => ctx.fiber.report(error, 'agent/request-error')
    ctx.on('agent/request-error', async (error, next) => {
      const recovery = recover(error, next, { unloading: unloading.signal, report })
      running.add(recovery)
      try {
        return await recovery
      } finally {
        running.delete(recovery)
      }
    })
  },
}
