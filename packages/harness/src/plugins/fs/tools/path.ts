import { ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolRunContext } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type { FsTarget } from '../service.ts'

/** A relative path starts at the folder of the session, never at that of the process. */
export async function resolveArgument(ctx: Context, path: string, exec: ToolRunContext): Promise<FsTarget> {
  if (path.trim() === '') throw new ToolArgsError(['file_path: is blank'])
  const { signal } = exec
  const cwd = exec.agent?.session.header.cwd
  return await ctx.fs.resolve(path, cwd === undefined ? { signal } : { cwd, signal })
}

/** Text that has half a character cannot be written as it is. */
export function assertWellFormed(name: string, text: string): void {
  if (!text.isWellFormed()) throw new ToolArgsError([`${name}: has half of a surrogate pair`])
}
