import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readTextNow } from './env.ts'
import { placeholderSign, signName } from './protected.ts'

/** Read by git as "here", which is what it takes for granted without the file. */
const commonFolder = '.\n'

/** Hears of each path before something is made there, and in the end which of them could not be taken away. */
export interface PlaceholderRecord {
  note(path: string): void
  rest(paths: readonly string[]): void
}

/**
 * Things that keep a protected name taken where nothing is: only what is there can be mounted over.
 *
 * They are folders that git neither lists nor cleans, and go with the plugin, unless somebody put something in or another
 * process still has one mounted: taken away now, it would no longer protect there.
 */
export class Placeholders {
  readonly #made = new Set<string>()
  #record: PlaceholderRecord | undefined

  /** The first one hears of all that is made from here on. */
  recordIn(record: PlaceholderRecord): void {
    this.#record ??= record
  }

  /** Those that stand there. */
  get paths(): ReadonlySet<string> {
    return this.#made
  }

  /** What is at `path` now. Undefined where nobody like us can make anything there. */
  take(path: string): 'there' | 'link' | undefined {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats !== undefined) return stats.isSymbolicLink() ? 'link' : 'there'
    this.#record?.note(path)
    this.#made.add(path)
    try {
      make(path)
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      this.#made.delete(path)
      if (['EACCES', 'EPERM', 'EROFS'].includes(code)) return undefined
      if (code === 'EEXIST') return this.take(path)
      throw error
    }
    return 'there'
  }

  release(): void {
    const rest = removePlaceholders([...this.#made].toReversed())
    this.#record?.rest(rest)
    this.#made.clear()
  }
}

/** All of it or nothing: half of it, on a disk that is full, would mean something else. */
function make(path: string): void {
  const isFile = basename(path) === 'commondir'
  if (!isFile) mkdirSync(path)
  const file = isFile ? path : join(path, signName)
  try {
    writeFileSync(file, isFile ? commonFolder : placeholderSign, { flag: 'wx', mode: 0o444 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(isFile ? path : file, { force: true })
    if (!isFile) remove(path)
    throw error
  }
}

/** Takes away those of `paths` that are ours; returns those that a process still has mounted. */
export function removePlaceholders(paths: readonly string[]): readonly string[] {
  const mounted = paths.length === 0 ? '' : mountTables()
  return paths.filter(path => {
    if (mounted.includes(` ${escaped(path)} `)) return true
    remove(path)
    return false
  })
}

/** The first part of `path` that is not there, or all of it. */
export function firstMissing(path: string, root: string): string {
  let missing = path
  for (let at = dirname(path); at !== root && at !== dirname(at); at = dirname(at)) {
    if (lstatSync(at, { throwIfNoEntry: false }) === undefined) missing = at
  }
  return missing
}

/** What somebody made of it stays. */
function remove(path: string): void {
  try {
    const [file, text] =
      basename(path) === 'commondir' ? [path, commonFolder] : [join(path, signName), placeholderSign]
    if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === true && readFileSync(file, 'utf8') === text)
      unlinkSync(file)
    if (file !== path) rmdirSync(path)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'EBUSY'].includes(code))
      throw error
  }
}

function mountTables(): string {
  const processes = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return processes.map(pid => readTextNow(`/proc/${pid}/mountinfo`) ?? '').join('')
}

/** As the kernel writes paths in its tables. */
function escaped(path: string): string {
  return path.replace(/[ \t\n\\]/g, char => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
}
