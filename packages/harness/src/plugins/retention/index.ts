import { gte, int, number, optional, prefault, strictObject } from 'zod/mini'
import type { input, output } from 'zod/mini'
import type { SessionId } from '@dsh/protocol'
import { endsWithin } from '../../kernel/index.ts'
import type { Context, Emit, PluginObject } from '../../kernel/index.ts'
import { removeStored, retentionCandidates } from './candidates.ts'
import { dayMs, planRetention } from './plan.ts'
import type { RemovalReason, RetentionLimits } from './plan.ts'

export { removeStored, retentionCandidates } from './candidates.ts'
export { planRetention } from './plan.ts'
export type { Removal, RemovalReason, RetentionLimits, StoredCandidate } from './plan.ts'

declare module '../../kernel/index.ts' {
  interface Events {
    /** A stored session was removed because of a limit. */
    'retention/removed': Emit<[removed: { readonly id: SessionId; readonly reason: RemovalReason }]>
  }
}

const configSchema = () =>
  prefault(
    strictObject({
      maxAgeDays: optional(number().check(gte(1))),
      maxSessions: optional(int().check(gte(1))),
      maxBytes: optional(int().check(gte(1))),
    }),
    {},
  )

/** How long the program's end waits for what is going on. */
const endMs = 2000

/**
 * Removes stored sessions that are over the limits of its config: after a turn, in the background, at most once a day.
 * Without a limit it does nothing. What somebody has open, or what cannot be read, stays.
 */
export const retention: PluginObject<
  input<ReturnType<typeof configSchema>>,
  output<ReturnType<typeof configSchema>>
> = {
  name: 'retention',
  inject: { required: ['sessions', 'sessionPersistence'], optional: ['sessionProjectionCache'] },
  get Config() {
    return configSchema()
  },
  apply(ctx, limits) {
    if (Object.values(limits).every(limit => limit === undefined)) return
    const ending = new AbortController()
    let running: Promise<void> | undefined
    let lastRun = -Infinity
    ctx.effect(
      () => async () => {
        if (running === undefined || (await endsWithin(running, endMs))) return
        ending.abort()
        await running
      },
      'retention',
    )
    const hear = (type: string): void => {
      const now = Date.now()
      if (type !== 'turn/end' || running !== undefined || now - lastRun < dayMs) return
      lastRun = now
      running = enforce(ctx, limits, ending.signal)
        .catch((error: unknown) => {
          if (!ending.signal.aborted) ctx.fiber.report(error, 'retention')
        })
        .finally(() => {
          running = undefined
        })
    }
    ctx.on('session/event', (_session, { type }) => hear(type), { global: true })
  },
}

/** Ends between two removals once the signal is aborted. */
async function enforce(ctx: Context, limits: RetentionLimits, signal: AbortSignal): Promise<void> {
  const removals = planRetention(await retentionCandidates(ctx, signal), limits, Date.now())
  for (const { candidate, reason } of removals) {
    if (signal.aborted) return
    if (await removeStored(ctx, candidate.id)) ctx.emit('retention/removed', { id: candidate.id, reason })
  }
}
