/** One row of a table, by the titles of its columns. */
export interface TableRow {
  /** The heading above the table. */
  readonly section: string
  /** From 1. */
  readonly line: number
  readonly cells: Readonly<Record<string, string>>
}

/** The rows of every table of a document, in order. */
export function readTables(markdown: string): TableRow[] {
  const rows: TableRow[] = []
  let section = ''
  let columns: readonly string[] | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    const heading = /^#+ (.*)$/.exec(line)?.[1]
    section = heading ?? section
    if (!line.startsWith('|')) {
      columns = undefined
      continue
    }
    const cells = cellsOf(line)
    if (columns === undefined) columns = cells
    else if (!/^[|\s:-]+$/.test(line))
      rows.push({ section, line: index + 1, cells: byTitle(columns, cells, index + 1) })
  }
  return rows
}

/** What stands in backticks. */
export function codeIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, code]) => code ?? [])
}

function cellsOf(line: string): string[] {
  const inner = line.trim().replace(/^\||\|$/g, '')
  return inner.split(/(?<!\\)\|/).map(cell => cell.trim().replaceAll('\\|', '|'))
}

function byTitle(titles: readonly string[], cells: readonly string[], line: number): Record<string, string> {
  if (cells.length !== titles.length)
    throw new Error(`line ${line} has ${cells.length} cells under ${titles.length} titles`)
  return Object.fromEntries(titles.map((title, index) => [title, cells[index] ?? '']))
}
