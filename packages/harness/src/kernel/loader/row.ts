import type { Inject } from '../plugin.ts'
import { nearest } from '../nearest.ts'
import { LoaderError } from './errors.ts'

/** One line of a composition: a plugin to mount, or with `group: true` a list of such. */
export interface Row {
  /** Unique in its list; patches find the row by it. */
  readonly id: string
  /** A built-in plugin, a package, or a file; relative files start with a dot. */
  readonly name: string
  readonly config?: unknown
  readonly disabled?: boolean
  readonly group?: true
  /** The rows of a group. */
  readonly rows?: readonly Row[]
  /** Services the plugin waits for besides its own. */
  readonly inject?: Inject
  /** true = a realm of its own, a text = the realm of that label. */
  readonly isolate?: Readonly<Record<string, true | string>>
  readonly intercept?: Readonly<Record<string, object>>
  /** The file that names the plugin, as a URL; relative names count from there. */
  readonly base?: string
  /** Why the row cannot be mounted at all. */
  readonly problem?: string
}

/** A row as one layer writes it: whatever it leaves out comes from the layers before. */
export type RowPatch = { readonly id: string; readonly rows?: readonly RowPatch[] } & Partial<
  Omit<Row, 'id' | 'rows'>
>

const keys = ['id', 'name', 'config', 'disabled', 'group', 'inject', 'isolate', 'intercept']

/** Reads one layer. Throws INVALID_ROW with the path into the document. */
export function parseRows(value: unknown, base: string | undefined, path = 'top level'): RowPatch[] {
  if (!Array.isArray(value)) throw invalid(path, `is ${describe(value)}, not a list of plugins`)
  const rows = value.map((row, index) =>
    parseRow(row, base, path === 'top level' ? `[${index}]` : `${path}[${index}]`),
  )
  const seen = new Set<string>()
  for (const { id } of rows) {
    if (seen.has(id)) throw invalid(path, `names id "${id}" twice`)
    seen.add(id)
  }
  return rows
}

function parseRow(value: unknown, base: string | undefined, path: string): RowPatch {
  if (!isRecord(value)) throw invalid(path, `is ${describe(value)}, not a mapping with id or name`)
  for (const key of Object.keys(value)) {
    if (!keys.includes(key)) throw invalid(path, `has an unknown key "${key}"${nearest(key, keys)}`)
  }
  const name = optionalText(value, 'name', path)
  const id = optionalText(value, 'id', path) ?? (name === undefined ? undefined : idOf(name))
  if (id === undefined) throw invalid(path, 'has neither id nor name')
  return {
    id,
    ...(name !== undefined && { name, ...(base !== undefined && { base }) }),
    ...parseSwitches(value, path),
    ...parseContent(value, base, path),
    ...(value['inject'] !== undefined && { inject: value['inject'] as Inject }),
    ...(value['isolate'] !== undefined && { isolate: parseIsolate(value['isolate'], `${path}.isolate`) }),
    ...(value['intercept'] !== undefined && {
      intercept: parseIntercept(value['intercept'], `${path}.intercept`),
    }),
  }
}

function parseSwitches({ disabled }: Record<string, unknown>, path: string): Pick<RowPatch, 'disabled'> {
  if (disabled === undefined) return {}
  if (typeof disabled === 'boolean') return { disabled }
  throw invalid(`${path}.disabled`, `is ${describe(disabled)}; write true or false`)
}

function parseContent(
  { group, config }: Record<string, unknown>,
  base: string | undefined,
  path: string,
): Pick<RowPatch, 'group' | 'rows' | 'config'> {
  if (group === true) return { group, rows: parseRows(config ?? [], base, `${path}.config`) }
  if (group !== undefined) throw invalid(`${path}.group`, `is ${describe(group)}; write true or leave it out`)
  return config === undefined ? {} : { config }
}

function parseIsolate(value: unknown, path: string): Record<string, true | string> {
  if (!isRecord(value)) throw invalid(path, `is ${describe(value)}, not a mapping of services`)
  for (const [key, label] of Object.entries(value)) {
    if (label !== true && typeof label !== 'string')
      throw invalid(`${path}.${key}`, `is ${describe(label)}; write true or a label`)
  }
  return value as Record<string, true | string>
}

function parseIntercept(value: unknown, path: string): Record<string, object> {
  if (!isRecord(value)) throw invalid(path, `is ${describe(value)}, not a mapping of services`)
  for (const [key, config] of Object.entries(value)) {
    if (!isRecord(config)) throw invalid(`${path}.${key}`, `is ${describe(config)}, not a mapping`)
  }
  return value as Record<string, object>
}

function optionalText(row: Record<string, unknown>, key: string, path: string): string | undefined {
  const value = row[key]
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value === '')
    throw invalid(`${path}.${key}`, `is ${describe(value)}, not a text`)
  return value
}

function idOf(name: string): string {
  return (name.split('/').at(-1) ?? name).replace(/\.[cm]?[jt]s$/, '')
}

function invalid(path: string, problem: string): LoaderError {
  return new LoaderError('INVALID_ROW', `${path} ${problem}`)
}

function describe(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value)
}

/** A mapping as files hold it; what a program puts into its own rows may be an instance of something, and stays whole. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
