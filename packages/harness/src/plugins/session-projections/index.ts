import { _default, gte, int, lte, minLength, optional, prefault, strictObject, string } from 'zod/mini'
import type { input, output } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { PluginObject } from '../../kernel/index.ts'
import { SessionProjectionCache } from './cache.ts'
import { SessionProjections } from './registry.ts'
import { ProjectionSaver } from './saver.ts'
import { registerUnits } from './units.ts'
import type { RowFiles } from './row-files.ts'

export { SessionProjectionCache } from './cache.ts'
export type { ColdSession } from './cache.ts'
export { ProjectionError } from './errors.ts'
export type { ProjectionErrorCode } from './errors.ts'
export type { ProjectionKey, ProjectionSnapshot, ProjectionStates, ProjectionUnit } from './projection.ts'
export type { SessionListMetadata } from './units/list-metadata.ts'
export { SessionProjections } from './registry.ts'
export type { ProjectionListener } from './registry.ts'
export { countOf, noCounts } from './units/stats-sum.ts'
export type { RouteCounts, SessionStats, TokenCounts, ToolCounts } from './units/stats-sum.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    sessionProjections: SessionProjections
    sessionProjectionCache: SessionProjectionCache
  }
}

const configSchema = () =>
  prefault(
    strictObject({
      /** Where values are kept between runs; without it there is no cache. */
      folder: optional(string().check(minLength(1))),
      writeEveryEvents: _default(int().check(gte(1)), 200),
      writeIntervalMs: _default(int().check(gte(1), lte(MAX_TIMER_DELAY_MS)), 5000),
      /** Of one session. */
      maxBytes: _default(int().check(gte(1)), 262_144),
      maxFiles: _default(int().check(gte(1)), 10_000),
    }),
    {},
  )

type Config = output<ReturnType<typeof configSchema>>

/**
 * What follows from a session's log, by key: now, after any event, and, with a folder to keep it in, of sessions that
 * are not live, without reading their logs again.
 */
export const sessionProjections: PluginObject<input<ReturnType<typeof configSchema>>, Config> = {
  name: 'session-projections',
  inject: { required: ['sessions'], optional: ['sessionPersistence'] },
  get Config() {
    return configSchema()
  },
  apply(ctx, { folder, maxBytes, maxFiles, ...saving }) {
    const projections = new SessionProjections(ctx)
    registerUnits(projections)
    if (folder === undefined || ctx.get('sessionPersistence') === undefined) return
    let opened: Promise<RowFiles> | undefined
    const files = (): Promise<RowFiles> =>
      (opened ??= import('./row-files.ts').then(
        module => new module.RowFiles(folder, { maxBytes, maxFiles }),
      ))
    const cache = new SessionProjectionCache(ctx, { projections, files })
    new ProjectionSaver(cache, saving).follow(ctx)
    ctx.on('persistence/removed', id => cache.forget(id))
  },
}
