import type { SessionId } from '@dsh/protocol'
import type { ReadableRow } from '../../core/session/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { SessionListMetadata } from '../session-projections/index.ts'
import type { StoredCandidate } from './plan.ts'

/** Every stored session that can be read. One that cannot is nobody's to remove unseen. */
export async function retentionCandidates(ctx: Context, signal?: AbortSignal): Promise<StoredCandidate[]> {
  const rows = await ctx.sessionPersistence.list(signal)
  const candidates: StoredCandidate[] = []
  for (const row of rows) {
    signal?.throwIfAborted()
    if (!('header' in row)) continue
    const { id, updatedAt, bytes = 0, holder } = row
    const inUse = holder !== undefined || ctx.sessions.get(id) !== undefined
    candidates.push({ id, updatedAt, bytes, inUse, archived: !inUse && (await isArchived(ctx, row)) })
  }
  return candidates
}

/** False where somebody took it up, or removed it, meanwhile. */
export async function removeStored(ctx: Context, id: SessionId): Promise<boolean> {
  try {
    return await ctx.sessionPersistence.remove(id)
  } catch (error) {
    const { code } = error as { readonly code?: unknown }
    if (code === 'SESSION_HELD' || code === 'SESSION_LIVE') return false
    throw error
  }
}

async function isArchived(ctx: Context, row: ReadableRow): Promise<boolean> {
  try {
    const snapshot = await ctx.get('sessionProjectionCache')?.coldSnapshot(row)
    const metadata = snapshot?.values['sessionListMetadata'] as unknown as SessionListMetadata | undefined
    return metadata?.archived === true
  } catch {
    // Of a log that cannot be read nobody knows that it may go.
    return false
  }
}
