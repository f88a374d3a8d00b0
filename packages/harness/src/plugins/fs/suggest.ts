import { basename, dirname } from 'node:path'
import { editDistance } from '../../kernel/index.ts'
import type { FileSystem, FsTarget } from './service.ts'

const maxSuggestions = 3
const maxEntries = 5000

/** `no file …`, with what is there under a similar name, or where the path stops to exist. */
export async function missingText(
  fs: FileSystem,
  target: FsTarget,
  options: { readonly what?: 'file' | 'folder'; readonly signal: AbortSignal },
): Promise<string> {
  const { what = 'file', signal } = options
  const plain = `no ${what} ${target.displayPath}`
  try {
    const parent = dirname(target.displayPath)
    const folder = await fs.resolve(parent, { signal })
    const info = await fs.stat(folder, signal)
    if (info === undefined) return `${plain}; ${await missingText(fs, folder, { what: 'folder', signal })}`
    const names = (await fs.listDir(folder, signal)).slice(0, maxEntries).map(entry => entry.name)
    const near = similarNames(basename(target.displayPath), names)
    return near.length === 0 ? plain : `${plain}; similar: ${near.join(', ')}`
  } catch {
    return plain
  }
}

/** The names most like `name`, the best first. */
function similarNames(name: string, names: readonly string[]): readonly string[] {
  const wanted = name.toLowerCase()
  const most = wanted.length < 3 ? 1 : Math.max(2, Math.floor(wanted.length / 3))
  return names
    .map(other => ({ other, distance: distanceOf(wanted, other.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .toSorted((a, b) => a.distance - b.distance || (a.other < b.other ? -1 : 1))
    .slice(0, maxSuggestions)
    .map(({ other }) => other)
}

/** How many characters differ; half a step where one name is the other with another ending. */
function distanceOf(a: string, b: string): number {
  const [stem, other] = [a, b].map(name => name.replace(/\.[^.]*$/, ''))
  if (stem !== undefined && stem !== '' && stem === other) return a === b ? 0 : 0.5
  if (Math.abs(a.length - b.length) > a.length / 3 + 1) return Infinity
  return editDistance(a, b)
}
