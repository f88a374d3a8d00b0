import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import type { Dirent, Stats } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { placeholderSign } from '../sandbox/index.ts'
import { Ignore, parseIgnoreRules } from './ignore.ts'
import type { IgnoreRules } from './ignore.ts'
import { callPath, joinRaw } from './paths.ts'
import type { RawPath } from './paths.ts'

/** What tells whether a file is still the one that was read. */
export interface Look {
  /** With the bits of its kind. */
  readonly mode: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  readonly ino: number
}

export interface Walked {
  /** Files and links. */
  readonly files: Map<RawPath, Look>
  /** Folders, ignored ones left out. */
  readonly folders: Set<RawPath>
  /** Those of them without an entry. */
  readonly empty: RawPath[]
  readonly tooLarge: RawPath[]
  readonly special: RawPath[]
  readonly unreadable: RawPath[]
  ignored: number
  /** What the ignore rules leave out, each folder once. */
  readonly ignoredPaths: RawPath[]
  bytes: number
  /** Ignore rules from outside of the files. */
  readonly exclude: string
}

export interface WalkOptions {
  readonly maxFileBytes: number
  /** Stops with what it has where there are more. */
  readonly maxFiles: number
  readonly maxBytes: number
  /** Real paths that are no part of it. */
  readonly without: ReadonlySet<RawPath>
  /** Rules that were read before, by folder. */
  readonly rules: RulesCache
  readonly signal: AbortSignal
}

export type RulesCache = Map<RawPath, { readonly look: Look; readonly rules: IgnoreRules }>

/** How long the event loop waits for a walk at a time. */
export const sliceMs = 3
const largestRules = 1024 * 1024
const excludeFile = '.git/info/exclude'

/**
 * Looks at everything in the workspace that its ignore rules do not leave out. Never follows a link, never leaves the
 * file system, and looks into nothing that is git's own: `.git` and bare repositories. Nested repositories are folders.
 */
export async function walk(root: RawPath, options: WalkOptions): Promise<Walked> {
  const exclude = readSmall(root, excludeFile)
  const walked: Walked = {
    files: new Map(),
    folders: new Set(),
    empty: [],
    tooLarge: [],
    special: [],
    unreadable: [],
    ignored: 0,
    ignoredPaths: [],
    bytes: 0,
    exclude,
  }
  const walker = new Walker(root, walked, options)
  let since = performance.now()
  for (const folder of walker) {
    walker.enter(folder)
    if (walked.files.size > options.maxFiles || walked.bytes > options.maxBytes) break
    if (performance.now() - since < sliceMs) continue
    await setImmediate()
    options.signal.throwIfAborted()
    since = performance.now()
  }
  return walked
}

class Walker {
  readonly #root: RawPath
  readonly #walked: Walked
  readonly #options: WalkOptions
  readonly #device: number
  readonly #ignore: Ignore
  readonly #rules = new Map<RawPath, IgnoreRules>()
  readonly #waiting: RawPath[] = ['']

  constructor(root: RawPath, walked: Walked, options: WalkOptions) {
    this.#root = root
    this.#walked = walked
    this.#options = options
    this.#device = lstatSync(callPath(root, '')).dev
    this.#ignore = new Ignore(folder => this.#rules.get(folder), parseIgnoreRules(walked.exclude))
  }

  *[Symbol.iterator](): IterableIterator<RawPath> {
    for (let next = this.#waiting.pop(); next !== undefined; next = this.#waiting.pop()) yield next
  }

  enter(folder: RawPath): void {
    const entries = this.#read(folder)
    if (entries === undefined) return
    if (
      entries.length === 1 &&
      isPlaceholder(
        this.#root,
        folder,
        entries.map(({ name }) => name),
      )
    )
      return
    const isBare = looksBare(entries)
    if (isBare) {
      this.#walked.special.push(folder)
      return
    }
    if (folder !== '') this.#walked.folders.add(folder)
    if (entries.length === 0 && folder !== '') this.#walked.empty.push(folder)
    if (entries.some(({ name }) => name === '.gitignore')) this.#readRules(folder)
    for (const entry of entries) this.#look(joinRaw(folder, entry.name), entry)
  }

  #read(folder: RawPath): readonly Dirent[] | undefined {
    try {
      return readdirSync(callPath(this.#root, folder) as string, { withFileTypes: true, encoding: 'latin1' })
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR') this.#walked.unreadable.push(folder)
      return undefined
    }
  }

  #look(path: RawPath, entry: Dirent): void {
    const walked = this.#walked
    if (isGitName(entry.name)) return
    if (this.#options.without.has(joinRaw(this.#root, path))) return
    const isFolder = entry.isDirectory()
    if (this.#ignore.matches(path, isFolder)) {
      walked.ignored++
      walked.ignoredPaths.push(path)
      return
    }
    const stats = lookAt(this.#root, path)
    if (stats === undefined) return
    if (stats.isDirectory()) {
      if (stats.dev === this.#device) this.#waiting.push(path)
      else walked.special.push(path)
    } else if (!stats.isFile() && !stats.isSymbolicLink()) {
      walked.special.push(path)
    } else if (stats.size > this.#options.maxFileBytes) {
      walked.tooLarge.push(path)
    } else {
      walked.files.set(path, lookOf(stats))
      walked.bytes += stats.size
    }
  }

  #readRules(folder: RawPath): void {
    const path = joinRaw(folder, '.gitignore')
    const stats = lookAt(this.#root, path)
    if (stats === undefined || !stats.isFile()) return
    const look = lookOf(stats)
    const { rules: cache } = this.#options
    const known = cache.get(folder)
    if (known !== undefined && isSameLook(known.look, look) && !isFresh(look)) {
      this.#rules.set(folder, known.rules)
      return
    }
    const rules = parseIgnoreRules(readSmall(this.#root, path))
    this.#rules.set(folder, rules)
    cache.set(folder, { look, rules })
  }
}

/** Whether `folder` only takes a name for the sandbox, for as long as the program runs. */
export function isPlaceholder(root: RawPath, folder: RawPath, [name, second]: readonly string[]): boolean {
  if (name !== '.gitignore' || second !== undefined) return false
  return readSmall(root, joinRaw(folder, name)) === placeholderSign
}

/** Whatever the case: git refuses such names in its trees. */
function isGitName(name: string): boolean {
  return name.length === 4 && name.toLowerCase() === '.git'
}

function looksBare(entries: readonly Dirent[]): boolean {
  let signs = 0
  for (const { name } of entries) if (name === 'HEAD' || name === 'objects' || name === 'refs') signs++
  return signs === 3
}

export function lookAt(root: RawPath, path: RawPath): Stats | undefined {
  try {
    return lstatSync(callPath(root, path), { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

export function lookOf({ mode, size, mtimeMs, ctimeMs, ino }: Stats): Look {
  return { mode, size, mtimeMs, ctimeMs, ino }
}

export function isSameLook(a: Look, b: Look): boolean {
  return (
    a.mtimeMs === b.mtimeMs &&
    a.ctimeMs === b.ctimeMs &&
    a.size === b.size &&
    a.mode === b.mode &&
    a.ino === b.ino
  )
}

/** Nothing came, went or was written between two walks, as far as looks tell. */
export function looksSame(a: Walked, b: Walked): boolean {
  if (a.files.size !== b.files.size || a.folders.size !== b.folders.size) return false
  for (const folder of a.folders) if (!b.folders.has(folder)) return false
  for (const [path, look] of a.files) {
    const other = b.files.get(path)
    if (other === undefined || !isSameLook(look, other)) return false
  }
  return true
}

/** Clocks of file systems tick in steps: what changed just now may change again and look the same. */
const tickMs = 50

export function isFresh({ ctimeMs }: Look): boolean {
  return ctimeMs > Date.now() - tickMs
}

/** Empty where it cannot be read, or is no small plain file. */
function readSmall(root: RawPath, path: RawPath): string {
  try {
    const stats = lookAt(root, path)
    if (stats === undefined || !stats.isFile() || stats.size > largestRules) return ''
    return readFileSync(callPath(root, path), 'latin1')
  } catch {
    return ''
  }
}
