import { _default, int, lte, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type {} from '../sandbox/index.ts'
import type {} from '../subprocess/index.ts'
import type { WarmShells, ShellsConfig } from './local.ts'
import type { SandboxShells } from './service.ts'

export type { RunningShell, SandboxShells, ShellCommand } from './service.ts'

const schema = () =>
  prefault(
    strictObject({
      sandboxes: _default(int().check(positive()), 4),
      commands: _default(int().check(positive()), 16),
      idleMs: _default(milliseconds(), 300_000),
      beginMs: _default(milliseconds(), 5000),
    }),
    {},
  )

const milliseconds = () => int().check(positive(), lte(MAX_TIMER_DELAY_MS))

/**
 * `ctx.sandboxShells`: sandboxes that stand by and serve the commands of one session, for a fifth of what a sandbox of
 * its own costs each.
 *
 * A sandbox serves a command only in the very world that the command would get by itself, and ends with its last
 * command when that changes. It is a folder of processes of its own: commands of one session see each other, as they
 * would without a sandbox, and what one leaves running lives until the sandbox ends. What runs in it can harm the
 * commands of its own session, and nothing outside. How a command ended is told by a process that nobody in there can
 * look into, trace or speak for; who kills it kills the sandbox.
 */
export const sandboxShells: PluginObject<input<ReturnType<typeof schema>>, ShellsConfig> = {
  name: 'sandbox-shells',
  inject: ['sandbox', 'sessions', 'subprocess'],
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: ShellsConfig) {
    let shells: WarmShells | undefined
    const service: SandboxShells = {
      async run(command) {
        if (shells === undefined) {
          const { WarmShells } = await import('./local.ts')
          shells ??= new WarmShells(ctx, config)
        }
        return await shells.run(command)
      },
    }
    ctx.effect(() => () => shells?.close(), 'sandboxes')
    ctx.on('session/disposed', session => void shells?.forget(session.id), { global: true })
    ctx.provide('sandboxShells', service)
  },
}
