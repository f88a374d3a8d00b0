import type { Context } from './context.ts'

/** Every service by its key. Plugins merge their own in; each key is also a getter on `Context`. */
export interface Services {}

export type ServiceKey = keyof Services & string

const isService = Symbol.for('dsh.service')

/**
 * Base of services whose methods must know their caller.
 *
 * Whoever reads `ctx.<key>` gets a view of the service in which `this.ctx` is the reader's own context, so that what a
 * method registers belongs to the caller. The view inherits from the service: keep state in fields that are assigned
 * once (maps, sets, objects) and marked `private`; `#private` fields are not reachable through a view, and a view is
 * frozen, so assigning to a field throws.
 */
export abstract class Service {
  declare readonly ctx: Context

  /** Provides itself under `key`; others see it once the plugin of `ctx` is active. */
  constructor(ctx: Context, key: ServiceKey) {
    Object.defineProperty(this, 'ctx', { value: ctx })
    ctx.provide(key, this as never)
  }

  get [isService](): true {
    return true
  }
}

/** `service` as seen from `ctx`; what is not a `Service` is given as it is. */
export function viewFor(ctx: Context, service: unknown): unknown {
  if (typeof service !== 'object' || service === null || !(isService in service)) return service
  return Object.freeze(Object.create(service, { ctx: { value: ctx } }))
}
