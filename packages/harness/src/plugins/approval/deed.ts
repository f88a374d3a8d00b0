import { resolve } from 'node:path'
import type { Session } from '../../core/session/index.ts'
import type { ToolEffect, WiderAccess } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { changeRefusal } from '../sandbox/index.ts'
import { parseShell } from '../shell-command/index.ts'
import type { ShellProgram } from '../shell-command/index.ts'

/** What a call would do, looked up in the world: paths with links resolved, commands taken apart. */
export type Deed =
  | {
      readonly kind: 'write'
      readonly path: string
      /** As the call names it, absolute. */
      readonly named: string
      /** Why the mode of the session does not let it happen. */
      readonly refusal: string | undefined
    }
  | {
      readonly kind: 'command'
      readonly command: string
      /** Undefined where it cannot be read. */
      readonly program: ShellProgram | undefined
      readonly folder: string | undefined
      readonly isTyped?: true
      readonly wants?: { readonly access: WiderAccess; readonly justification: string }
    }
  | { readonly kind: 'fetch'; readonly url: string; /** '' where there is none. */ readonly host: string }
  | { readonly kind: 'foreign'; readonly what: string }
  | { readonly kind: 'program'; readonly language: string }

/** Undefined for what the tool itself will refuse, which is no matter of permission. */
export async function deedOf(
  ctx: Context,
  effect: ToolEffect,
  session: Session | undefined,
  signal?: AbortSignal,
): Promise<Deed | undefined> {
  const cwd = session?.header.cwd
  switch (effect.kind) {
    case 'write':
      return await writeOf(ctx, effect.path, session, signal)
    case 'command': {
      const { command, workdir, isTyped, wants } = effect
      const folder = workdir === undefined ? cwd : resolve(cwd ?? '/', workdir)
      const program = await parseShell(command)
      return {
        kind: 'command',
        command,
        program,
        folder,
        ...(isTyped && { isTyped }),
        ...(wants && { wants }),
      }
    }
    case 'fetch':
      return { kind: 'fetch', url: effect.url, host: URL.parse(effect.url)?.host ?? '' }
    default:
      return effect
  }
}

async function writeOf(
  ctx: Context,
  path: string,
  session: Session | undefined,
  signal: AbortSignal | undefined,
): Promise<Deed | undefined> {
  if (path.trim() === '') return undefined
  const cwd = session?.header.cwd
  const target = await ctx.fs.resolve(path, { ...(cwd !== undefined && { cwd }), ...(signal && { signal }) })
  const refusal = await changeRefusal(ctx, target, session === undefined ? {} : { agent: { session } })
  return { kind: 'write', path: ctx.fs.processPath(target), named: target.displayPath, refusal }
}
