import { LoaderError } from './errors.ts'
import { isRecord } from './row.ts'
import type { Row, RowPatch } from './row.ts'

/**
 * Merges layers, the first the weakest, into the rows to run. A row keeps the place of the layer that brought it in;
 * its config is merged key by key, lists and other fields are replaced. Throws INVALID_ROW for a row nobody named.
 */
export function compose(layers: readonly (readonly RowPatch[])[]): Row[] {
  const rows = layers.reduce<readonly RowPatch[]>((under, over) => mergeRows(under, over), [])
  return rows.map(toRow)
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

function toRow(patch: RowPatch): Row {
  const { rows, name, ...rest } = patch
  if (patch.group === true) return { ...rest, name: name ?? 'group', rows: (rows ?? []).map(toRow) }
  if (name === undefined) {
    throw new LoaderError(
      'INVALID_ROW',
      `"${patch.id}" changes a plugin that no layer brings in: give it a name`,
    )
  }
  return { ...rest, name }
}
