import { createHash } from 'node:crypto'
import type { Context } from '../../kernel/index.ts'
import type {} from '../fs/index.ts'
import type { UnfinishedCall } from './cut-off.ts'

export type Verdict =
  | 'never started'
  /** What it announced to write is what the file holds. */
  | 'finished'
  /** It had announced a change, and the file is as it was before. */
  | 'changed nothing'
  | 'unknown'

/** A larger file is not looked at. */
const maxBytes = 64 * 2 ** 20

/** What became of a call, as far as the log and the file that it was about can tell. Writes nothing. */
export async function examine(
  ctx: Context,
  { hasStarted, change }: Pick<UnfinishedCall, 'hasStarted' | 'change'>,
  signal?: AbortSignal,
): Promise<Verdict> {
  if (!hasStarted) return 'never started'
  if (change === undefined || ctx.get('fs') === undefined) return 'unknown'
  const now = await hashOf(ctx, change.path, signal)
  if (now === change.after) return 'finished'
  return now === change.before ? 'changed nothing' : 'unknown'
}

/** Null where there is no file, undefined where it cannot be told. */
async function hashOf(ctx: Context, path: string, signal?: AbortSignal): Promise<string | null | undefined> {
  try {
    const target = await ctx.fs.resolve(path)
    if ((await ctx.fs.stat(target, signal)) === undefined) return null
    const bytes = await ctx.fs.readBytes(target, signal, maxBytes)
    return createHash('sha256').update(bytes).digest('hex')
  } catch {
    return undefined
  }
}
