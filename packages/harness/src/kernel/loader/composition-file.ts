import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { isMap, isSeq, parseDocument } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import { mergeRows } from './compose.ts'
import { LoaderError } from './errors.ts'
import { isRecord, parseRows } from './row.ts'
import type { RowPatch } from './row.ts'

/** A composition file as it was read, with the files it includes. */
export interface CompositionText {
  readonly rows: readonly RowPatch[]
  /** Contents by path, for telling a real change from a touched file. */
  readonly texts: ReadonlyMap<string, string>
  /** The file says nothing, not even that its list is empty. */
  readonly isBlank: boolean
}

/**
 * Reads a file and its includes; with `text` the file is taken to hold that. Throws INVALID_COMPOSITION with line and
 * column, or INVALID_ROW.
 */
export async function readComposition(file: string, text?: string): Promise<CompositionText> {
  const texts = new Map<string, string>(text === undefined ? [] : [[file, text]])
  const rows = await readRows(file, texts, [])
  return { rows, texts, isBlank: parse(texts.get(file) ?? '', file).toJS() === null }
}

/** The file with one row's config merged, or the row switched; comments and order are kept. */
export function editComposition(
  text: string,
  file: string,
  id: string,
  change: { readonly config?: Readonly<Record<string, unknown>>; readonly disabled?: boolean },
): string {
  const document = parse(text, file)
  const row = findRow(document, id) ?? addRow(document, id)
  if (change.disabled !== undefined) row.set('disabled', change.disabled)
  for (const [path, value] of leaves(change.config ?? {}, ['config'])) row.setIn(path, value)
  return document.toString()
}

async function readRows(
  file: string,
  texts: Map<string, string>,
  outer: readonly string[],
): Promise<RowPatch[]> {
  if (outer.includes(file)) throw invalid(file, `includes itself by way of ${outer.join(' → ')}`)
  const text = texts.get(file) ?? (await readFile(file, 'utf8')).replace(/^\uFEFF/, '')
  texts.set(file, text)
  const value: unknown = parse(text, file).toJS()
  const rows = parseRows(value ?? [], pathToFileURL(file).href)
  return Promise.all(rows.map(row => resolveIncludes(row, file, texts, [...outer, file])))
}

/** `{name: include, config: {path, patches?}}` becomes a group of the rows in that file. */
async function resolveIncludes(
  row: RowPatch,
  file: string,
  texts: Map<string, string>,
  outer: readonly string[],
): Promise<RowPatch> {
  if (row.rows !== undefined) {
    return {
      ...row,
      rows: await Promise.all(row.rows.map(inner => resolveIncludes(inner, file, texts, outer))),
    }
  }
  if (row.name !== 'include') return row
  const target = isRecord(row.config) ? row.config['path'] : undefined
  if (typeof target !== 'string')
    throw invalid(file, `row "${row.id}" includes nothing: give its config a path`)
  const included = path.resolve(path.dirname(file), target)
  const patches = isRecord(row.config) ? row.config['patches'] : undefined
  const { name: _name, base: _base, config: _config, ...rest } = row
  const rows = await readRows(included, texts, outer)
  const patched = parseRows(patches ?? [], pathToFileURL(file).href, `${row.id}.config.patches`)
  return { ...rest, group: true, rows: mergeRows(rows, patched) }
}

function parse(text: string, file: string): Document.Parsed {
  const document = parseDocument(text, { prettyErrors: true })
  // An unknown tag is only a warning to the parser, but reading it as text would silently mean something else.
  const [problem] = [...document.errors, ...document.warnings]
  if (problem !== undefined) throw invalid(file, problem.message.split('\n')[0] ?? problem.message)
  return document
}

function findRow(document: Document, id: string): YAMLMap | undefined {
  const visit = (node: unknown): YAMLMap | undefined => {
    if (!isSeq(node)) return undefined
    for (const item of node.items) {
      if (!isMap(item)) continue
      const [row] = parseRows([item.toJSON()], undefined)
      if (row?.id === id) return item
      const inner = item.get('group') === true ? visit(item.get('config')) : undefined
      if (inner !== undefined) return inner
    }
    return undefined
  }
  return visit(document.contents)
}

function addRow(document: Document, id: string): YAMLMap {
  if (!isSeq(document.contents)) document.contents = document.createNode([])
  const row = document.createNode({ id }) as YAMLMap
  document.add(row)
  return row
}

function* leaves(
  value: Readonly<Record<string, unknown>>,
  path: readonly string[],
): Iterable<[string[], unknown]> {
  for (const [key, item] of Object.entries(value)) {
    if (isRecord(item) && Object.keys(item).length > 0) yield* leaves(item, [...path, key])
    else yield [[...path, key], item]
  }
}

function invalid(file: string, problem: string): LoaderError {
  return new LoaderError('INVALID_COMPOSITION', `${file}: ${problem}`)
}
