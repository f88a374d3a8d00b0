import type { Context, PluginObject } from '../../kernel/index.ts'
import { rewindSchema } from './config.ts'
import type { CheckedConfig, RewindConfig } from './config.ts'
import { hookUp } from './hooks.ts'
import { Keeper } from './keeper.ts'
import { LocalRewind } from './local.ts'
import { rewindEvents } from './log.ts'
import { Workspaces } from './workspaces.ts'

export * from './errors.ts'
export * from './events.ts'
export * from './service.ts'
export type { RewindConfig } from './config.ts'

/**
 * Keeps the files of the workspace as they were at the beginning of each turn and after each step that changed some, in
 * a private git repository outside of it, and takes files and conversation back: `ctx.rewind`.
 *
 * The user's own git is never touched or even looked at. Where points cannot be taken, one notice says so and the run
 * goes on.
 */
export const rewind: PluginObject<RewindConfig, CheckedConfig> = {
  name: 'rewind',
  inject: { required: ['sessions', 'tools'], optional: ['sessionPersistence', 'sandbox'] },
  get Config() {
    return rewindSchema()
  },
  apply(ctx: Context, config) {
    for (const definition of rewindEvents) ctx.sessions.registerEventType(definition)
    const workspaces = new Workspaces(config, notice => ctx.emit('rewind/notice', notice))
    const keeper = new Keeper(workspaces, error => ctx.fiber.report(error, 'restore/point'))
    hookUp(ctx, keeper)
    ctx.on('persistence/removed', async id => {
      const { forgetPoints } = await import('./forget.ts')
      await forgetPoints(config, id)
    })
    ctx.provide('rewind', new LocalRewind(ctx, config, workspaces, keeper))
  },
}
