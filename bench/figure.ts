/** One measured quantity. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ns' | 'µs' | 'ms' | 'bytes' | '×'
  /** What it is a quantity of. */
  readonly of: 'CPU' | 'wall' | 'memory' | 'ratio'
  /** What it should not be above. */
  readonly budget?: number
}

/** Gives the figure to `run.ts`, or prints it where the file was started by itself. */
export function report(figure: Figure): void {
  if (process.send === undefined) console.log(table([figure]))
  else process.send(figure)
}

const heads = ['figure', 'median', 'of', 'budget', '']

/** The figures as aligned columns. */
export function table(figures: readonly Figure[], withHead: 'head' | 'rows' = 'rows'): string {
  const rows = figures.map(({ name, value, unit, of, budget }) => [
    name,
    `${shown(value)} ${unit}`,
    of,
    budget === undefined ? '' : `${shown(budget)} ${unit}`,
    budget === undefined ? '' : value <= budget ? 'ok' : 'OVER',
  ])
  const all = withHead === 'head' ? [heads, ...rows] : rows
  const widths = heads.map((_, column) => Math.max(...all.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return column === 1 || column === 3 ? cell.padStart(width) : cell.padEnd(width)
      })
      .join('  ')
      .trimEnd()
  return all.map(line).join('\n')
}

function shown(value: number): string {
  if (!Number.isFinite(value)) return '–'
  return Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString()
}
