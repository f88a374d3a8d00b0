import { readdirSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { callPath, joinRaw } from './paths.ts'
import type { RawPath } from './paths.ts'
import { isPlaceholder, lookAt, lookOf, sliceMs } from './walk.ts'
import type { Look } from './walk.ts'

/** How much of what ignore rules leave out is kept all the same. */
export interface IgnoredLimits {
  readonly maxFileBytes: number
  /** Of all such files together. */
  readonly maxBytes: number
  readonly maxFiles: number
}

export interface IgnoredFiles {
  readonly files: ReadonlyMap<RawPath, Look>
  readonly bytes: number
  /** Entries that are not kept, or not whole. */
  readonly leftOut: readonly RawPath[]
}

interface Found {
  readonly files: Map<RawPath, Look>
  bytes: number
  isWhole: boolean
}

/**
 * The small ones among `entries`, which ignore rules leave out of the workspace. Files come before folders, and a folder
 * comes as a whole or, where it is more than may be kept, not at all: half of what a tool installed is of no use.
 */
export async function walkIgnored(
  root: RawPath,
  entries: readonly RawPath[],
  options: {
    readonly limits: IgnoredLimits
    readonly without: ReadonlySet<RawPath>
    readonly signal: AbortSignal
  },
): Promise<IgnoredFiles> {
  const { limits, without, signal } = options
  const files = new Map<RawPath, Look>()
  const leftOut: RawPath[] = []
  let bytes = 0
  for (const entry of foldersLast(root, entries)) {
    const rest = { ...limits, maxBytes: limits.maxBytes - bytes, maxFiles: limits.maxFiles - files.size }
    const found = await readEntry(root, entry, { limits: rest, without, signal })
    if (found === undefined) {
      leftOut.push(entry)
      continue
    }
    if (!found.isWhole) leftOut.push(entry)
    for (const [path, look] of found.files) files.set(path, look)
    bytes += found.bytes
  }
  return { files, bytes, leftOut }
}

function foldersLast(root: RawPath, entries: readonly RawPath[]): readonly RawPath[] {
  const isFolder = (path: RawPath): boolean => lookAt(root, path)?.isDirectory() === true
  const folders = new Set(entries.filter(isFolder))
  return [...entries.filter(path => !folders.has(path)), ...folders]
}

/** Undefined where it is more than the limits leave room for. */
async function readEntry(
  root: RawPath,
  entry: RawPath,
  {
    limits,
    without,
    signal,
  }: { readonly limits: IgnoredLimits; readonly without: ReadonlySet<RawPath>; readonly signal: AbortSignal },
): Promise<Found | undefined> {
  const found: Found = { files: new Map(), bytes: 0, isWhole: true }
  const waiting: RawPath[] = [entry]
  let since = performance.now()
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (without.has(joinRaw(root, path))) continue
    if (!take(root, path, { found, waiting, maxFileBytes: limits.maxFileBytes })) found.isWhole = false
    if (found.bytes > limits.maxBytes || found.files.size > limits.maxFiles) return undefined
    if (performance.now() - since < sliceMs) continue
    await setImmediate()
    signal.throwIfAborted()
    since = performance.now()
  }
  return found
}

/** False for what is there and cannot be kept. */
function take(
  root: RawPath,
  path: RawPath,
  {
    found,
    waiting,
    maxFileBytes,
  }: { readonly found: Found; readonly waiting: RawPath[]; readonly maxFileBytes: number },
): boolean {
  const stats = lookAt(root, path)
  if (stats === undefined) return true
  if (stats.isDirectory()) {
    const names = namesIn(root, path)
    if (names !== undefined && isPlaceholder(root, path, names)) return true
    const plain = names?.filter(name => name.toLowerCase() !== '.git') ?? []
    waiting.push(...plain.map(name => joinRaw(path, name)))
    return names !== undefined && plain.length === names.length
  }
  if (!stats.isFile() && !stats.isSymbolicLink()) return true
  if (stats.size > maxFileBytes) return false
  found.files.set(path, lookOf(stats))
  found.bytes += stats.size
  return true
}

function namesIn(root: RawPath, folder: RawPath): readonly string[] | undefined {
  try {
    return readdirSync(callPath(root, folder) as string, { encoding: 'latin1' })
  } catch {
    return undefined
  }
}
