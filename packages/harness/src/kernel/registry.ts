import { KernelError } from './errors.ts'
import type { Fiber } from './fiber.ts'
import { nearest } from './nearest.ts'

interface Slot {
  readonly service: unknown
  readonly owner: Fiber
}

/** Who provides what, by key and realm, and who waits for it. */
export class Registry {
  readonly #slots = new Map<string, Map<symbol | undefined, Slot>>()
  readonly #watchers = new Map<string, Set<Fiber>>()
  /** Fibers in the middle of a step. */
  readonly busy = new Set<Fiber>()
  /** Raised whenever a lookup may answer otherwise than before. */
  version = 0
  /** How many copies of the kernel this tree has spoken of. */
  copiesTold = 1
  #fibers = 0

  nextFiberId(): number {
    return ++this.#fibers
  }

  provide(key: string, realm: symbol | undefined, service: unknown, owner: Fiber): () => void {
    const realms = this.#slots.get(key) ?? new Map<symbol | undefined, Slot>()
    this.#slots.set(key, realms)
    const other = realms.get(realm)
    if (other !== undefined) {
      throw new KernelError(
        'DUPLICATE_SERVICE',
        `service "${key}" of "${owner.name}" is already provided by "${other.owner.name}"`,
      )
    }
    const slot: Slot = { service, owner }
    realms.set(realm, slot)
    this.version++
    if (owner.state === 'active') this.announce(key)
    return () => {
      realms.delete(realm)
      this.version++
      this.announce(key)
    }
  }

  /** What `reader` may use: of an active owner, of one it is part of, or of one that ends and it was loaded on. */
  read(key: string, realm: symbol | undefined, reader: Fiber): unknown {
    const slot = this.#slots.get(key)?.get(realm)
    if (slot === undefined) return undefined
    const { owner, service } = slot
    const isOpen = owner.state === 'active' || (owner.state === 'unloading' && reader.wasLoadedOn(owner))
    return isOpen || reader.isWithin(owner) ? service : undefined
  }

  /** The fiber a dependent would stand on now, undefined while there is none. */
  ownerOf(key: string, realm: symbol | undefined): Fiber | undefined {
    const owner = this.#slots.get(key)?.get(realm)?.owner
    return owner?.state === 'active' ? owner : undefined
  }

  /** Throws MISSING_SERVICE with the nearest key that is there. */
  missing(key: string): never {
    throw new KernelError('MISSING_SERVICE', `service "${key}" is not provided${this.hint(key)}`)
  }

  /** `; did you mean "x"?` for a key that somebody provides, or nothing. */
  hint(key: string): string {
    return nearest(
      key,
      [...this.#slots].filter(([, realms]) => realms.size > 0).map(([other]) => other),
    )
  }

  watch(fiber: Fiber, keys: readonly string[]): void {
    for (const key of keys) {
      const watchers = this.#watchers.get(key) ?? new Set()
      this.#watchers.set(key, watchers.add(fiber))
    }
  }

  unwatch(fiber: Fiber, keys: readonly string[]): void {
    for (const key of keys) this.#watchers.get(key)?.delete(fiber)
  }

  announce(key: string): void {
    for (const fiber of this.#watchers.get(key) ?? []) fiber.settle()
  }

  /** Keys that `owner` provides. */
  keysOf(owner: Fiber): string[] {
    return [...this.#slots]
      .filter(([, realms]) => [...realms.values()].some(slot => slot.owner === owner))
      .map(([key]) => key)
  }

  /** Running fibers that stand on `owner`. */
  dependentsOf(owner: Fiber): Fiber[] {
    const found = new Set<Fiber>()
    for (const key of this.keysOf(owner)) {
      for (const fiber of this.#watchers.get(key) ?? []) if (fiber.standsOn(owner)) found.add(fiber)
    }
    return [...found]
  }
}
