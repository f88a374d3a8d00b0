import type { Context } from '@dsh/harness/kernel'
import type { Rewind } from '@dsh/harness/plugins/rewind'
import { headless } from '@dsh/harness/presets/headless'
import { assertStore, compositionFiles, tellRowsThatAreOff } from '../composition.ts'
import { usageError } from '../errors.ts'
import { inert } from '../text.ts'
import { withFix } from '../with-fix.ts'
import type { Io } from '../io.ts'

/** Does `job` with the plugins of a run, since logs may be written, and ends them. */
export async function withRewind<T>(io: Io, job: (rewind: Rewind, ctx: Context) => Promise<T>): Promise<T> {
  const { home, env, err } = io
  const files = compositionFiles(home)
  const ctx = await headless({ home, env, permission: 'read-only', files })
  try {
    tellRowsThatAreOff(ctx, io)
    assertStore(ctx, io)
    ctx.on('rewind/notice', ({ message }) => err.line(`note: ${inert(message)}`))
    const rewind = ctx.get('rewind')
    if (rewind === undefined)
      throw usageError('REWIND_OFF', 'the plugin "rewind" does not run', `${io.command} plugin why rewind`)
    return await job(rewind, ctx)
  } catch (error) {
    throw withFix(error, io)
  } finally {
    await ctx.dispose()
  }
}
