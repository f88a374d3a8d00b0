import { cutText, ToolArgsError } from '../../core/tools/index.ts'
import type { FileSystem, FsDirEntry, FsTarget } from '../fs/index.ts'

interface FileView {
  readonly path: string
  /** First and last line from 1; -1 as the last means the end. */
  readonly range: readonly number[] | undefined
  readonly maxChars: number
}

const clipped = '\n(cut; find the lines you need with grep, then view them with view_range)'

/** Numbered lines under a heading. A line end at the end of the text begins one more line. */
export function viewFile(text: string, { path, range, maxChars }: FileView): string {
  const lines = text.split(/\r\n|\r|\n/)
  const [first, last] = range === undefined ? [1, lines.length] : rangeOf(range, lines.length)
  const rows = lines
    .slice(first - 1, last)
    .map((line, index) => `${String(first + index).padStart(6)}  ${line}`)
  return cutText(`${path}, ${lines.length} lines:\n${rows.join('\n')}`, maxChars, { mark: clipped })
}

function rangeOf(range: readonly number[], count: number): readonly [first: number, last: number] {
  const [first, end] = range
  if (range.length !== 2 || first === undefined || end === undefined)
    throw new ToolArgsError(['view_range: must be two numbers, the first and the last line'])
  const last = end === -1 ? count : end
  if (first < 1 || first > count)
    throw new ToolArgsError([`view_range: begins at ${first}; the file has 1 to ${count}`])
  if (last > count) throw new ToolArgsError([`view_range: ends at ${last}; the file has ${count} lines`])
  if (last < first) throw new ToolArgsError([`view_range: ends at ${last}, before it begins at ${first}`])
  return [first, last]
}

const hidden = /^(\.|node_modules$|__pycache__$)/
const marks: Readonly<Record<FsDirEntry['type'], string>> = { directory: 'd', file: 'f', other: '?' }

/** Two levels of a folder, one entry a row, without what nobody looks for there. */
export async function viewFolder(fs: FileSystem, target: FsTarget, signal: AbortSignal): Promise<string> {
  const rows: string[] = []
  const shown = async (folder: FsTarget): Promise<readonly FsDirEntry[]> =>
    (await fs.listDir(folder, signal)).filter(({ name }) => !hidden.test(name))
  const add = ({ type, target: { displayPath } }: FsDirEntry): void =>
    void rows.push(`${marks[type]}\t${displayPath.replace(/[\r\n]/g, '?')}`)
  for (const entry of await shown(target)) {
    add(entry)
    if (entry.type === 'directory') for (const inner of await shown(entry.target)) add(inner)
  }
  return [`${target.displayPath}:`, ...rows.toSorted((a, b) => (pathOf(a) < pathOf(b) ? -1 : 1))].join('\n')
}

function pathOf(row: string): string {
  return row.replace(/^.\t/, '')
}
