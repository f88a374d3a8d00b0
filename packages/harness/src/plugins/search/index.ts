import { _default, int, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { createRipgrep } from './ripgrep.ts'
import { globTool } from './tools/glob.ts'
import type { GlobConfig } from './tools/glob.ts'
import { grepSection, grepTool } from './tools/grep.ts'
import type { GrepConfig } from './tools/grep.ts'

export * from './errors.ts'

export type SearchConfig = GlobConfig & GrepConfig

const count = (fallback: number) => _default(int().check(positive()), fallback)

const schema = () =>
  prefault(
    strictObject({
      globMaxResults: count(100),
      grepMaxMatches: count(250),
      grepMaxLineBytes: count(500),
      grepMaxBytes: count(32 * 1024),
      rawOutputMaxBytes: count(20_000_000),
    }),
    {},
  )

/**
 * The tools grep and glob, on the ripgrep that npm brings, which is looked for at the first search.
 *
 * Both see the same files: what .gitignore and .ignore name is left out unless a path leads there, hidden files are
 * not, and what version control keeps for itself is never seen, nor what the sandbox's policy hides. The search program
 * reads as this process does, outside of any sandbox, and can start nothing.
 */
export const search: PluginObject<input<ReturnType<typeof schema>>, SearchConfig> = {
  name: 'search',
  inject: { required: ['fs', 'subprocess', 'tools'], optional: ['sandboxPolicy', 'systemPrompt'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: SearchConfig) {
    const ripgrep = createRipgrep(ctx)
    ctx.tools.register(globTool(ctx, config, ripgrep))
    ctx.tools.register(grepTool(ctx, config, ripgrep))
    ctx.get('systemPrompt')?.section({ name: 'tool:grep', order: 104, text: grepSection })
  },
}
