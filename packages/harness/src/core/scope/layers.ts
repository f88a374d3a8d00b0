import type { Context, Disposer } from '../../kernel/index.ts'
import { scopeChainOf, scopeChanges } from './chain.ts'

/** Told after a registration came or went. */
export interface LayerObserver {
  /** A throw refuses the registration, which is then undone. */
  added?(): void
  removed?(): void
}

/** Lists of registrations, by what they register. */
type Layer<L> = { readonly [Key in keyof L]: { readonly size: number } }

/** One layer of registrations for everybody, and one for each scope that has any. */
export class ScopedLayers<L extends Layer<L>> {
  readonly global: L
  readonly #create: () => L
  readonly #scoped = new WeakMap<object, L>()
  #epoch = 0

  constructor(create: () => L) {
    this.#create = create
    this.global = create()
  }

  /** Raised whenever any lookup may answer otherwise than before. */
  get version(): number {
    return this.#epoch + scopeChanges()
  }

  /** The layer of `scope` itself, if it has one. */
  layerOf(scope: object | undefined): L | undefined {
    return scope === undefined ? this.global : this.#scoped.get(scope)
  }

  /** The layers that count for `scope`: the global one, then from the farthest scope to the nearest. */
  chainLayers(scope: object | undefined): L[] {
    const layers = [this.global]
    for (const key of scopeChainOf(scope).reverse()) {
      const layer = this.#scoped.get(key)
      if (layer !== undefined) layers.push(layer)
    }
    return layers
  }

  /** Everything that counts for `scope` by name; the nearest layer wins and keeps the place of what it hides. */
  merge<T>(scope: object | undefined, pick: (layer: L) => Iterable<readonly [string, T]>): Map<string, T> {
    const merged = new Map<string, T>()
    for (const layer of this.chainLayers(scope)) {
      for (const [name, value] of pick(layer)) merged.set(name, value)
    }
    return merged
  }

  /**
   * Runs `action` on the layer of `ctx`'s scope, as an effect of `ctx`; what it gives undoes it. A layer left empty is
   * dropped.
   */
  effect(
    ctx: Context,
    label: string,
    action: (layer: L) => () => void,
    observer: LayerObserver = {},
  ): Disposer {
    return ctx.effect(() => {
      const { scope } = ctx
      const layer = this.layerOf(scope) ?? this.#create()
      const undo = action(layer)
      if (scope !== undefined) this.#scoped.set(scope, layer)
      this.#epoch++
      const remove = (): void => {
        undo()
        if (scope !== undefined && isEmpty(layer) && this.#scoped.get(scope) === layer) {
          this.#scoped.delete(scope)
        }
        this.#epoch++
      }
      try {
        observer.added?.()
      } catch (error) {
        remove()
        throw error
      }
      return () => {
        remove()
        observer.removed?.()
      }
    }, label)
  }
}

function isEmpty<L extends Layer<L>>(layer: L): boolean {
  return Object.values<{ readonly size: number }>(layer).every(({ size }) => size === 0)
}

/** What `compute` makes of the layers for each scope, made anew only when a registration changed. */
export class ScopedCache<L extends Layer<L>, V> {
  readonly #layers: ScopedLayers<L>
  readonly #compute: (scope: object | undefined) => V
  readonly #known = new WeakMap<object, { readonly version: number; readonly value: V }>()

  constructor(layers: ScopedLayers<L>, compute: (scope: object | undefined) => V) {
    this.#layers = layers
    this.#compute = compute
  }

  get(scope: object | undefined): V {
    const key = scope ?? this
    const { version } = this.#layers
    const known = this.#known.get(key)
    if (known?.version === version) return known.value
    const value = this.#compute(scope)
    this.#known.set(key, { version, value })
    return value
  }
}
