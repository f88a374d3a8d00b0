import { relative, resolve, sep } from 'node:path'
import type { Context } from '../../kernel/index.ts'
import { FsError } from '../fs/index.ts'
import type { FsActor, FsTarget } from '../fs/index.ts'
import { readRefusal, writeRefusal } from './refusal.ts'

/** Holds file tools to the policy of their call at the file they found, whatever they are called. */
export function fence(ctx: Context): void {
  const check = async (target: FsTarget, actor: FsActor): Promise<void> => {
    const reason = await changeRefusal(ctx, target, actor)
    if (reason !== undefined) throw new FsError('FS_SANDBOX_DENIED', reason)
  }
  ctx.on(
    'fs/read-intent',
    async (target, { agent, token }, next) => {
      const policy = await ctx.sandboxPolicy.resolve({ session: agent?.session, ...(token && { token }) })
      const reason = readRefusal(policy, ctx.fs.processPath(target), target.displayPath)
      if (reason !== undefined) throw new FsError('FS_SANDBOX_DENIED', reason)
      return await next()
    },
    { prepend: true },
  )
  ctx.on(
    'fs/write-intent',
    async (target, actor, next) => {
      await check(target, actor)
      return await next()
    },
    { prepend: true },
  )
  ctx.on(
    'fs/edit-intent',
    async (target, actor, next) => {
      await check(target, actor)
      return await next()
    },
    { prepend: true },
  )
}

/** Why `actor` may not change `target`. Both ways to it count: the name that was asked for, and where its links lead. */
export async function changeRefusal(
  ctx: Context,
  target: FsTarget,
  { agent, token }: FsActor,
): Promise<string | undefined> {
  const session = agent?.session
  const policy = await ctx.sandboxPolicy.resolve({ session, ...(token && { token }) })
  const { displayPath } = target
  const refusal = writeRefusal(policy, ctx.fs.processPath(target), displayPath)
  if (refusal !== undefined) return refusal
  const asked = relative(session?.header.cwd ?? policy.workspaceRoot, displayPath)
  if (asked === '..' || asked.startsWith(`..${sep}`)) return undefined
  return writeRefusal(policy, resolve(policy.workspaceRoot, asked), displayPath)
}
