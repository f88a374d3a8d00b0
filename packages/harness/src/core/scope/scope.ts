import type { Context } from '../../kernel/index.ts'
import { bindScopeParent } from './chain.ts'

export interface Scope {
  /** What is registered through it is for this scope alone, and ends with it. */
  readonly ctx: Context
  /** Resolves after everything made through `ctx` is undone; all callers share one end. */
  dispose(): Promise<void>
}

/**
 * A place of its own for `key`, any object, usable at once. `parent` puts it below another scope for as long as it lives.
 */
export function createScope(ctx: Context, key: object, options: { readonly parent?: object } = {}): Scope {
  const { parent } = options
  let scoped: Context | undefined
  const fiber = ctx.plugin(function scope(own: Context) {
    if (parent !== undefined) own.effect(() => bindScopeParent(key, parent).release, 'scope parent')
    scoped = own.extend({ scope: key })
  })
  if (scoped === undefined) {
    const { error } = fiber
    void fiber.dispose()
    throw error
  }
  return { ctx: scoped, dispose: () => fiber.dispose() }
}

/** The nearest tag above `ctx`. */
export function scopeOf(ctx: Context): object | undefined {
  return ctx.scope
}
