import type { Carrier } from '../../kernel/index.ts'
import { scopeChainOf, scopeChanges } from './chain.ts'

/** Admits listeners without a tag, and those tagged with the scope or one above it: events flow up, never down. */
class ScopeCarrier implements Carrier {
  readonly #key: object | undefined

  constructor(key: object | undefined) {
    this.#key = key
  }

  get version(): number {
    return scopeChanges()
  }

  admits(scope: object | undefined): boolean {
    return scope === undefined || scopeChainOf(this.#key).includes(scope)
  }
}

const unscoped = new ScopeCarrier(undefined)
const carriers = new WeakMap<object, Carrier>()

/** The one carrier of `key`; without a key, only listeners without a tag are reached. */
export function scopeTarget(key: object | undefined): Carrier {
  if (key === undefined) return unscoped
  const known = carriers.get(key)
  if (known !== undefined) return known
  const carrier = new ScopeCarrier(key)
  carriers.set(key, carrier)
  return carrier
}
