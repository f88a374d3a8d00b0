import { countOf, noCounts } from '@dsh/harness/plugins/session-projections'
import type { RouteCounts, SessionStats } from '@dsh/harness/plugins/session-projections'

/** Counts by day, by model and by folder, and all of them together. However many sessions are added, it grows with these alone. */
export class Totals {
  sessions = 0
  sum: RouteCounts = noCounts
  readonly days = new Map<string, RouteCounts>()
  readonly models = new Map<string, RouteCounts>()
  readonly folders = new Map<string, RouteCounts>()

  add(stats: SessionStats, folder: string): void {
    this.sessions += 1
    for (const [day, models] of Object.entries(stats.days)) {
      for (const [model, counts] of Object.entries(models)) {
        this.sum = countOf(this.sum, counts)
        add(this.days, day, counts)
        add(this.models, model, counts)
        add(this.folders, folder, counts)
      }
    }
  }
}

function add(map: Map<string, RouteCounts>, key: string, counts: RouteCounts): void {
  map.set(key, countOf(map.get(key) ?? noCounts, counts))
}
