import { prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { localPty, localPtyFields } from './local.ts'
import type { LocalPtyConfig } from './local.ts'
import { PtySessionService } from './sessions.ts'
import { ptyTools, ptyToolsFields } from './tools.ts'
import type { PtyToolsConfig } from './tools.ts'

export * from './errors.ts'
export * from './service.ts'
export { shownOutput } from './shown.ts'
export { localPty } from './local.ts'
export type { LocalPtyConfig } from './local.ts'
export { ptyTools } from './tools.ts'
export type { PtyToolsConfig } from './tools.ts'

export type PtyConfig = LocalPtyConfig & PtyToolsConfig

const schema = () => prefault(strictObject({ ...localPtyFields(), ...ptyToolsFields() }), {})

/**
 * Terminals that last from call to call: `ctx.pty`, its shells on this machine, and the tools terminal_*.
 *
 * A terminal does what the mode of its session allows when it is opened, for as long as it lives; it is closed when the
 * session may do less.
 */
export const pty: PluginObject<input<ReturnType<typeof schema>>, PtyConfig> = {
  name: 'pty',
  inject: {
    required: ['agents', 'sessions', 'subprocess', 'tools'],
    optional: ['bash', 'sandbox', 'sandboxPolicy', 'tasks'],
  },
  get Config() {
    return schema()
  },
  apply(ctx: Context, { maxOutputBytes, ...local }: PtyConfig) {
    const service = new PtySessionService(ctx)
    ctx.effect(() => () => service.dispose(), 'terminals')
    ctx.on(
      'session/event',
      (session, event) => {
        if (event.type === 'sandbox/mode') service.narrow(session.id, event.data.mode)
      },
      { global: true },
    )
    ctx.plugin(localPty, local, { wait: true })
    ctx.plugin(ptyTools, { maxOutputBytes }, { wait: true })
  },
}
