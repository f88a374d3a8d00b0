import type { PluginObject } from '../../kernel/index.ts'
import { toolSearch as searchTool, toolSearchName } from './tools/tool-search.ts'

/**
 * Lets a model find the deferred tools, which no request tells of until they are asked for. The tool is offered as long
 * as there is something to find.
 */
export const toolSearch: PluginObject = {
  name: 'tool-search',
  inject: ['tools', 'systemPrompt'],
  apply(ctx) {
    ctx.tools.register(searchTool(ctx))
    ctx.systemPrompt.tools(({ scope }) => {
      const deferred = ctx.tools.deferred(scope ?? null)
      const own = deferred.find(({ name }) => name === toolSearchName)
      return { schemas: own === undefined || deferred.length === 1 ? [] : [own] }
    })
  },
}
