import type { PluginObject } from '../../kernel/index.ts'
import { SessionProjections } from './registry.ts'
import { registerUnits } from './units.ts'

export { ProjectionError } from './errors.ts'
export type { ProjectionErrorCode } from './errors.ts'
export type { ProjectionKey, ProjectionSnapshot, ProjectionStates, ProjectionUnit } from './projection.ts'
export { SessionProjections } from './registry.ts'
export type { ProjectionListener } from './registry.ts'
export { countOf, noCounts } from './units/stats-sum.ts'
export type { RouteCounts, SessionStats, TokenCounts, ToolCounts } from './units/stats-sum.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    sessionProjections: SessionProjections
  }
}

/** What follows from a session's log, by key: now, and after any event. */
export const sessionProjections: PluginObject = {
  name: 'session-projections',
  inject: ['sessions'],
  apply(ctx) {
    registerUnits(new SessionProjections(ctx))
  },
}
