import type { SessionProjections } from './registry.ts'
import { listMetadataUnit } from './units/list-metadata.ts'
import { permissionsUnit } from './units/permissions.ts'
import { routeUnit } from './units/route.ts'
import { sessionStatsUnit } from './units/session-stats.ts'
import { todoUnit } from './units/todo.ts'
import { tokenUsageUnit } from './units/token-usage.ts'
import { turnUnit } from './units/turn.ts'

/** The values of what the core, approvals and retries write. */
export function registerUnits(projections: SessionProjections): void {
  projections.register(turnUnit)
  projections.register(routeUnit)
  projections.register(permissionsUnit)
  projections.register(todoUnit)
  projections.register(tokenUsageUnit)
  projections.register(sessionStatsUnit)
  projections.register(listMetadataUnit)
}
