import type { Context } from '@dsh/harness/kernel'

/** Ends everything mounted below `ctx`; what takes longer than `ms` is left behind. */
export async function endWithin(ctx: Context, ms: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    await Promise.race([ctx.dispose(), late])
  } finally {
    clearTimeout(timer)
  }
}
