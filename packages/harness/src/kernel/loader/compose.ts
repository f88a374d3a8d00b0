import { nearest } from '../nearest.ts'
import { isRecord } from './row.ts'
import type { Row, RowPatch } from './row.ts'

/**
 * Merges layers, the first the weakest, into the rows to run. A row keeps the place of the layer that brought it in;
 * its config is merged key by key, lists and other fields are replaced. A row that changes what no layer brings in has a
 * `problem`.
 */
export function compose(layers: readonly (readonly RowPatch[])[]): Row[] {
  return toRows(layers.reduce<readonly RowPatch[]>((under, over) => mergeRows(under, over), []))
}

/** `over` on `under`, by id. */
export function mergeRows(under: readonly RowPatch[], over: readonly RowPatch[]): readonly RowPatch[] {
  const merged = new Map(under.map(row => [row.id, row]))
  for (const row of over) {
    const known = merged.get(row.id)
    merged.set(row.id, known === undefined ? row : mergeRow(known, row))
  }
  return [...merged.values()]
}

function mergeRow(under: RowPatch, over: RowPatch): RowPatch {
  return {
    ...under,
    ...over,
    ...(over.rows !== undefined && { rows: mergeRows(under.rows ?? [], over.rows) }),
    ...('config' in over && { config: mergeConfig(under.config, over.config) }),
  }
}

/** Two mappings key by key, at every depth; anything else is replaced. */
function mergeConfig(under: unknown, over: unknown): unknown {
  if (!isRecord(under) || !isRecord(over)) return over
  const merged: Record<string, unknown> = { ...under }
  for (const [key, value] of Object.entries(over)) merged[key] = mergeConfig(under[key], value)
  return merged
}

function toRows(patches: readonly RowPatch[]): Row[] {
  const known = patches.filter(({ name, group }) => name !== undefined || group === true).map(({ id }) => id)
  return patches.map(({ rows, name, ...rest }): Row => {
    if (rest.group === true) return { ...rest, name: name ?? 'group', rows: toRows(rows ?? []) }
    if (name !== undefined) return { ...rest, name }
    const { id } = rest
    return {
      id,
      name: id,
      problem: `no layer brings in a plugin "${id}"${nearest(id, known) || '; give it a name'}`,
    }
  })
}
