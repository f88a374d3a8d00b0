import type { Context, PluginObject } from '../../kernel/index.ts'
import { sessionQuerySchema } from './config.ts'
import type { SessionQueryConfig, SessionQueryInput } from './config.ts'
import { lazyQuery } from './lazy.ts'
import type { IndexedQuery } from './query.ts'
import type { SessionQuery } from './service.ts'

export * from './errors.ts'
export { examineIndex } from './examine.ts'
export type { IndexState } from './examine.ts'
export * from './service.ts'
export type { SessionQueryConfig } from './config.ts'

/**
 * Finds sessions and what was said in them: `ctx.sessionQuery` over the live sessions, the store, and an index that is
 * derived from the logs. Nothing is loaded or opened before the first question.
 */
export const sessionQuery: PluginObject<SessionQueryInput, SessionQueryConfig> = {
  name: 'session-query',
  inject: { required: ['sessions'], optional: ['sessionPersistence'] },
  get Config() {
    return sessionQuerySchema()
  },
  apply(ctx: Context, config: SessionQueryConfig) {
    let loaded: Promise<IndexedQuery> | undefined
    const load = (): Promise<IndexedQuery> => (loaded ??= open(ctx, config))
    ctx.effect(() => async () => await (await loaded)?.close(), 'the index of sessions')
    const query = lazyQuery(load)
    ctx.provide('sessionQuery', query)
    ctx.on('persistence/removed', async id => {
      // Where no index is there is nothing to let go of.
      if (loaded !== undefined || (await isThere(config.path))) await (await load()).forget(id)
    })
    if (config.tools) ctx.plugin(tools, { query, config }, { wait: true })
  },
}

interface ToolsConfig {
  readonly query: SessionQuery
  readonly config: SessionQueryConfig
}

/** For those who want them: the first request of everybody else stays small. */
const tools: PluginObject<ToolsConfig> = {
  name: 'session-query-tools',
  inject: ['tools'],
  async apply(ctx: Context, { query, config }: ToolsConfig) {
    const { sessionQueryTools } = await import('./tools/index.ts')
    for (const tool of sessionQueryTools(query, config)) ctx.tools.register(tool)
  },
}

async function isThere(path: string | undefined): Promise<boolean> {
  const { access } = await import('node:fs/promises')
  return (
    path !== undefined &&
    (await access(path).then(
      () => true,
      () => false,
    ))
  )
}

async function open(ctx: Context, config: SessionQueryConfig): Promise<IndexedQuery> {
  const [{ IndexedQuery }, { Sources }] = await Promise.all([import('./query.ts'), import('./sources.ts')])
  return new IndexedQuery(new Sources(ctx.sessions, () => ctx.get('sessionPersistence')), config)
}
