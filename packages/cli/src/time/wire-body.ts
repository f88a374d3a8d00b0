import type { GenerateOptions } from '@dsh/harness/llm'
import { messageOf } from '@dsh/harness/kernel'
import { headless } from '@dsh/harness/presets/headless'
import type { Session } from '@dsh/harness/session'
import { compositionFiles } from '../composition.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'

interface Place {
  readonly session: Session
  /** What to type where there is no body. */
  readonly fix: string
  readonly io: Io
}

/**
 * The body that would go to the provider, made by the adapter that serves it now. No key is in it and none is needed.
 *
 * A habit that the host refused at the time, and was asked again without, is in it all the same: an adapter learns such
 * things while it lives and no log tells of them.
 */
export async function wireBody(
  request: GenerateOptions,
  { session, fix, io: { env, home } }: Place,
): Promise<Uint8Array> {
  const ctx = await headless({ home, env, permission: 'read-only', files: compositionFiles(home) })
  try {
    // The adapter looks for pictures where the session lives.
    const leave = ctx.sessions.enter(session)
    try {
      const body = await ctx.llm.encode(request)
      if (body !== undefined) return body
      throw noBody(request, fix, { why: 'its adapter has no wire of its own' })
    } finally {
      leave()
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw noBody(request, fix, { why: messageOf(error), cause: error })
  } finally {
    await ctx.dispose()
  }
}

function noBody(
  { provider, model }: GenerateOptions,
  fix: string,
  { why, cause }: { readonly why: string; readonly cause?: unknown },
): CliError {
  return new CliError('NO_WIRE_BODY', `the body for ${provider}/${model} cannot be made: ${why}`, {
    cause,
    fix,
  })
}
