import { prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { localBash, localBashFields } from './local.ts'
import type { LocalBashConfig } from './local.ts'
import { bashToolFields, bashTools } from './tools.ts'
import type { BashToolsConfig } from './tools.ts'

export * from './errors.ts'
export * from './service.ts'
export { taskOutputOf } from './background.ts'
export { InertStream, inertText } from './inert.ts'
export { utf8Locale } from './locale.ts'
export { boundOutput } from './output.ts'
export { presentBash } from './present.ts'
export { LocalBash, localBash } from './local.ts'
export type { LocalBashConfig } from './local.ts'
export { bashTools } from './tools.ts'
export type { BashToolsConfig } from './tools.ts'
export * from './environment.ts'

export type BashConfig = LocalBashConfig & BashToolsConfig

const schema = () => prefault(strictObject({ ...localBashFields(), ...bashToolFields() }), {})

/** Commands in a shell: `ctx.bash` on this machine and the tool bash, each a plugin of its own too. */
export const bash: PluginObject<input<ReturnType<typeof schema>>, BashConfig> = {
  name: 'bash',
  inject: { required: ['subprocess'], optional: ['sandbox', 'sandboxShells', 'tasks'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: BashConfig) {
    const { tool, maxOutputBytes, home, ...rest } = config
    const local = ctx.plugin(localBash, rest)
    if (local.state === 'failed') throw local.error
    ctx.plugin(bashTools, { tool, maxOutputBytes, home }, { wait: true })
  },
}
