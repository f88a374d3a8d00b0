import type { Context } from '@dsh/harness/kernel'

/**
 * Ends everything mounted below `ctx`; what takes longer than `ms` is left behind. Resolves with what failed, undefined
 * where nothing did.
 */
export async function endWithin(ctx: Context, ms: number): Promise<unknown> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), ms)
  try {
    return await Promise.race([ctx.dispose(), late])
  } catch (error) {
    return error
  } finally {
    clearTimeout(timer)
  }
}
