import { _default, int, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { bashSection, bashTool } from './tools/bash.ts'
import type { BashToolConfig } from './tools/bash.ts'

export type { BashToolConfig } from './tools/bash.ts'

export const bashToolFields = () => ({ maxOutputBytes: _default(int().check(positive()), 24_000) })

const schema = () => prefault(strictObject(bashToolFields()), {})

/** The tool bash over whatever provides `ctx.bash`. */
export const bashTools: PluginObject<input<ReturnType<typeof schema>>, BashToolConfig> = {
  name: 'bash-tools',
  inject: { required: ['bash', 'tools'], optional: ['systemPrompt'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: BashToolConfig) {
    ctx.tools.register(bashTool(ctx, config))
    ctx.get('systemPrompt')?.section({ name: 'tool:bash', order: 105, text: bashSection })
  },
}
