import { boolean, _default, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { PluginObject } from '../../kernel/index.ts'
import { listForgotten } from './recall.ts'
import type { TodoConfig } from './tools/todo-write.ts'
import { todoWrite } from './tools/todo-write.ts'

export type { TodoConfig } from './tools/todo-write.ts'
export { todos } from './todos.ts'

const schema = () =>
  prefault(
    strictObject({
      /** Whether more than one item may be in progress at once. */
      allowParallelInProgress: _default(boolean(), true),
    }),
    {},
  )

/**
 * A list of tasks that the model keeps for itself, whole in the log at each change. It lasts until the model replaces it;
 * when its last mention leaves the model's view, it is shown again.
 */
export const todo: PluginObject<input<ReturnType<typeof schema>>, TodoConfig> = {
  name: 'todo',
  inject: ['tools', 'sessions'],
  get Config() {
    return schema()
  },
  apply(ctx, config) {
    ctx.tools.register(todoWrite(config))
    ctx.on('agent/pre-step', async ({ agent, step }, next) => {
      const decision = await next()
      if (decision.kind === 'reject') return decision
      // A turn that nothing enters is none.
      if (step === 1 && decision.messages.length === 0) return decision
      const list = listForgotten(agent.session)
      return list === undefined ? decision : { ...decision, messages: [...decision.messages, list] }
    })
  },
}
