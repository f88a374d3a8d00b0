/**
 * The plugin a module exports: its default export, its one named plugin, or the module itself where it exports
 * `apply`. Throws where that is not one answer, since a guess would silently drop what the other form declares.
 */
export function pluginOf(module: Readonly<Record<string, unknown>>): object {
  const facts = ['apply', 'inject', 'Config'].filter(key => key in module)
  const main = module['default']
  if (isPlugin(main)) {
    if (facts.length === 0) return main
    throw new Error(
      `it exports a default plugin and also "${facts.join('", "')}"; put these on the default export`,
    )
  }
  if (typeof module['apply'] === 'function') return module
  const named = Object.entries(module).filter(([, value]) => isNamedPlugin(value))
  const [first, second] = named
  if (first === undefined) throw new Error('it exports no plugin (a default export, or an object with apply)')
  if (second !== undefined) {
    throw new Error(
      `it exports several plugins ("${named.map(([name]) => name).join('", "')}"); make one the default`,
    )
  }
  return first[1] as object
}

function isPlugin(value: unknown): value is object {
  return typeof value === 'function' || isNamedPlugin(value)
}

/** A class of services or an object with apply; any other function may be just that. */
function isNamedPlugin(value: unknown): boolean {
  if (typeof value === 'function') {
    const prototype: unknown = value.prototype
    return typeof prototype === 'object' && prototype !== null && Symbol.for('dsh.service') in prototype
  }
  return (
    typeof value === 'object' && value !== null && typeof (value as { apply?: unknown }).apply === 'function'
  )
}
