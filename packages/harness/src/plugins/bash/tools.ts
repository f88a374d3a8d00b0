import { _default, boolean, int, optional, positive, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type {} from '../sandbox/index.ts'
import type {} from '../tasks/index.ts'
import { BashEnvironment } from './environment.ts'
import { bashSection, bashTool } from './tools/bash.ts'
import type { BashToolConfig } from './tools/bash.ts'

export interface BashToolsConfig extends BashToolConfig {
  /** Offers the tool bash; false where another plugin does. */
  readonly tool: boolean
  /** Told to commands as DSH_HOME. */
  readonly home?: string | undefined
}

export const bashToolFields = () => ({
  tool: _default(boolean(), true),
  maxOutputBytes: _default(int().check(positive()), 24_000),
  home: optional(string()),
})

const schema = () => prefault(strictObject(bashToolFields()), {})

/** The tool bash over whatever provides `ctx.bash`, and `ctx.bashEnv`. */
export const bashTools: PluginObject<input<ReturnType<typeof schema>>, BashToolsConfig> = {
  name: 'bash-tools',
  inject: { required: ['bash', 'tools'], optional: ['systemPrompt', 'sandbox', 'sandboxPolicy', 'tasks'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, { tool, maxOutputBytes, home }: BashToolsConfig) {
    new BashEnvironment(ctx, home)
    if (!tool) return
    const { timeoutMs } = ctx.bash.resolve({ command: '' })
    const offer = {
      timeoutMs,
      background: ctx.get('tasks') !== undefined,
      escalation: ctx.get('sandbox') !== undefined,
    }
    ctx.tools.register(bashTool(ctx, offer, { maxOutputBytes }))
    ctx.get('systemPrompt')?.section({ name: 'tool:bash', order: 105, text: bashSection(offer) })
  },
}
