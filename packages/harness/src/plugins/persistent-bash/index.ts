import { _default, int, lte, minLength, positive, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { HarnessError, MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { AgentShells } from './shells.ts'
import type { ShellLimits } from './shells.ts'
import { otherToolText, sectionText } from './texts.ts'
import { persistentBashTool } from './tool.ts'

export type PersistentBashConfig = ShellLimits

const schema = () =>
  prefault(
    strictObject({
      backendType: _default(string().check(minLength(1)), 'shell'),
      timeoutMs: _default(int().check(positive(), lte(MAX_TIMER_DELAY_MS)), 300_000),
      maxOutputBytes: _default(int().check(positive()), 24_000),
    }),
    {},
  )

/**
 * The tool `bash` as one shell that stays, on a terminal of `ctx.pty`, in place of that of the plugin `bash`: what a
 * command changes of the shell is there for the next. Nothing of it outlasts the program.
 */
export const persistentBash: PluginObject<input<ReturnType<typeof schema>>, PersistentBashConfig> = {
  name: 'persistent-bash',
  inject: { required: ['agents', 'bash', 'pty', 'tools'], optional: ['systemPrompt'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: PersistentBashConfig) {
    if (ctx.tools.get('bash') !== undefined) throw new HarnessError('TOOL_TAKEN', otherToolText)
    const shells = new AgentShells(ctx.pty, config)
    ctx.effect(() => () => shells.close(), 'shells')
    ctx.on('agent/disposed', ({ agent }) => shells.forget(agent), { global: true })
    ctx.tools.register(persistentBashTool(shells))
    ctx.get('systemPrompt')?.section({ name: 'tool:bash', order: 105, text: sectionText })
  },
}
