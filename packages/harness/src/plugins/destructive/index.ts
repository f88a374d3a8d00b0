import { _default, boolean, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { ToolEffect } from '../../core/tools/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type { Care, DestructiveConfig } from './care.ts'

export type { DestructiveConfig } from './care.ts'

const schema = () => prefault(strictObject({ yes: _default(boolean(), false) }), {})

/**
 * Takes care of commands that destroy: before one runs, the files are kept, small ignored ones too, and its result says
 * how they come back. What cannot be kept is asked for first.
 *
 * In full-access mode with nobody there to ask such a command runs, and its result says what is not kept.
 */
export const destructive: PluginObject<input<ReturnType<typeof schema>>, DestructiveConfig> = {
  name: 'destructive',
  inject: { required: ['tools', 'sandboxPolicy'], optional: ['rewind', 'sandbox', 'approval'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: DestructiveConfig) {
    let opening: Promise<Care> | undefined
    const open = async (): Promise<Care> => {
      const { Care } = await import('./care.ts')
      return new Care(ctx, config)
    }
    ctx.on(
      'tools/pre-execute',
      async (execution, next) => {
        // Arguments that the tool cannot read it refuses itself.
        const effects: readonly ToolEffect[] = await ctx.tools.effectsOf(execution).catch(() => [])
        const commands = effects.filter(effect => effect.kind === 'command')
        if (commands.length === 0) return await next()
        opening ??= open()
        return await (await opening).before(execution, commands, next)
      },
      { global: true },
    )
    ctx.on(
      'tools/execute',
      async (execution, next) => (await opening)?.around(execution, next) ?? next(),
      // Before restore points count the call as running: what is kept is how things were without it.
      { global: true, prepend: true },
    )
    ctx.on(
      'tools/post-execute',
      async (execution, result, next) => (await opening)?.after(execution, result, next) ?? next(),
      { global: true },
    )
  },
}
