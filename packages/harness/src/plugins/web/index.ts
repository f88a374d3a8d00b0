import type { PluginObject } from '../../kernel/index.ts'
import { webSchema } from './config.ts'
import type { WebConfig, WebInput } from './config.ts'
import { webEvents } from './declare.ts'
import { registerProviders } from './providers.ts'
import { Web } from './service.ts'
import { webFetchTool } from './tools/web-fetch.ts'
import { webSearchTool } from './tools/web-search.ts'

export * from './events.ts'
export { WebError } from './errors.ts'
export type { WebErrorCode } from './errors.ts'
export { Web } from './service.ts'
export type {
  WebChoice,
  WebFetchProvider,
  WebFetchRequest,
  WebFetchResult,
  WebSearchProvider,
  WebSearchRequest,
  WebSearchResult,
  WebSource,
} from './service.ts'
export type { WebConfig, WebInput } from './config.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    web: Web
  }
}

/**
 * The web: `ctx.web`, the tools web_fetch and web_search, a provider that fetches pages from public addresses only, and
 * search by DeepSeek or by any service that answers in JSON. Nothing is asked and no provider is loaded before the
 * first call.
 */
export const web: PluginObject<WebInput, WebConfig> = {
  name: 'web',
  inject: { required: ['sessions'], optional: ['tools'] },
  get Config() {
    return webSchema()
  },
  apply(ctx, config) {
    for (const definition of webEvents) ctx.sessions.registerEventType(definition)
    const service = new Web(ctx, config)
    registerProviders(service, config)
    const tools = ctx.get('tools')
    if (config.fetch) tools?.register(webFetchTool(ctx, config))
    if (config.search) tools?.register(webSearchTool(ctx, config))
  },
}
