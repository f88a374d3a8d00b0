import { prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { localBash, localBashFields } from './local.ts'
import type { LocalBashConfig } from './local.ts'
import { bashToolFields, bashTools } from './tools.ts'
import type { BashToolConfig } from './tools.ts'

export * from './service.ts'
export { inertText } from './inert.ts'
export { LocalBash, localBash } from './local.ts'
export type { LocalBashConfig } from './local.ts'
export { bashTools } from './tools.ts'
export type { BashToolConfig } from './tools.ts'

export type BashConfig = LocalBashConfig & BashToolConfig

const schema = () => prefault(strictObject({ ...localBashFields(), ...bashToolFields() }), {})

/** Commands in a shell: `ctx.bash` on this machine and the tool bash, each a plugin of its own too. */
export const bash: PluginObject<input<ReturnType<typeof schema>>, BashConfig> = {
  name: 'bash',
  inject: ['subprocess'],
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: BashConfig) {
    const { maxOutputBytes, ...rest } = config
    const local = ctx.plugin(localBash, rest)
    if (local.state === 'failed') throw local.error
    ctx.plugin(bashTools, { maxOutputBytes }, { wait: true })
  },
}
