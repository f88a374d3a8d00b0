/** Holds the parent of one scope; only who bound it may change it. */
export interface ScopeBinding {
  /** Throws a TypeError if `parent` is the scope itself or below it. */
  rebind(parent: object): void
  /** Makes the scope a root again. */
  release(): void
}

interface Chains {
  readonly parents: WeakMap<object, object>
  changes: number
}

// One for all copies of this module: what is below another scope is so for everybody.
const key = Symbol.for('dsh.scope.chains')
const shared = globalThis as { [key]?: Chains }
const chains = (shared[key] ??= { parents: new WeakMap(), changes: 0 })
const { parents } = chains

/** Puts `key` below `parent`: what reaches `key` reaches `parent` too. Throws a TypeError for a second parent or a cycle. */
export function bindScopeParent(key: object, parent: object): ScopeBinding {
  if (parents.has(key)) throw new TypeError('the scope already has a parent')
  let bound = true
  const bind = (next: object): void => {
    if (!bound) throw new TypeError('the scope was released')
    for (const above of scopeChainOf(next)) {
      if (above === key) throw new TypeError('a scope cannot be below itself')
    }
    parents.set(key, next)
    chains.changes++
  }
  bind(parent)
  return {
    rebind: bind,
    release: () => {
      if (!bound) return
      bound = false
      parents.delete(key)
      chains.changes++
    },
  }
}

/** The scope and those above it, nearest first. */
export function scopeChainOf(key: object | undefined): object[] {
  const chain: object[] = []
  for (let next = key; next !== undefined; next = parents.get(next)) chain.push(next)
  return chain
}

/** Raised whenever any scope's chain may have changed. */
export function scopeChanges(): number {
  return chains.changes
}
