import type { Context, EventNameOf } from '../../kernel/index.ts'
import type { LayerObserver } from './layers.ts'

type ChangeEvent = EventNameOf<'veto'> & `${string}/change`

/**
 * Tells a registry's change event: a listener may refuse what is added, but a removal reaches everyone, whatever one of
 * them throws.
 */
export function announceChange(ctx: Context, event: ChangeEvent): LayerObserver {
  return {
    added: () => (ctx.veto as (name: string) => void).call(ctx, event),
    removed: () => (ctx.emit as (name: string) => void).call(ctx, event),
  }
}
