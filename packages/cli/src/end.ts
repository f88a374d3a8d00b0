import { endsWithin } from '@dsh/harness/kernel'
import type { Context } from '@dsh/harness/kernel'

/**
 * Ends everything mounted below `ctx`; what takes longer than `ms` is left behind. Resolves with what failed, undefined
 * where nothing did.
 */
export async function endWithin(ctx: Context, ms: number): Promise<unknown> {
  try {
    await endsWithin(ctx.dispose(), ms)
    return undefined
  } catch (error) {
    return error
  }
}
