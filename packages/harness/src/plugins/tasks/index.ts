import { _default, int, nonnegative, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type {} from '../recovery/index.ts'
import { taskEvents } from './declare.ts'
import { lostOf, settle } from './history.ts'
import { Tasks } from './local.ts'
import type { TasksConfig } from './local.ts'
import { taskTools } from './tools.ts'
import type { TaskToolsConfig } from './tools.ts'

export * from './errors.ts'
export * from './events.ts'
export * from './service.ts'
export type { TasksConfig } from './local.ts'

const schema = () =>
  prefault(
    strictObject({
      maxRunning: _default(int().check(positive()), 10),
      maxWakes: _default(int().check(nonnegative()), 3),
      maxOutputBytes: _default(int().check(positive()), 24_000),
    }),
    {},
  )

/**
 * Work that goes on in the background: `ctx.tasks`, and the tools by which a model looks after what it started.
 *
 * The log knows of each task that it began and how it ended. A task ends with the agent that owns it.
 */
export const tasks: PluginObject<input<ReturnType<typeof schema>>, TasksConfig & TaskToolsConfig> = {
  name: 'tasks',
  inject: { required: ['agents', 'sessions', 'tools'], optional: ['recovery'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: TasksConfig & TaskToolsConfig) {
    for (const definition of taskEvents) ctx.sessions.registerEventType(definition)
    const service = new Tasks(ctx, config)
    ctx.on(
      'agent/session-start',
      ({ agent: { session }, source }) => {
        if (source === 'resume') settle(session)
      },
      { global: true },
    )
    ctx.on('agent/disposed', ({ agent }) => void service.leave(agent), { global: true })
    ctx.effect(() => () => service.close(), 'tasks')
    ctx.get('recovery')?.register(lostOf)
    for (const tool of taskTools(service, config)) ctx.tools.register(tool)
  },
}
