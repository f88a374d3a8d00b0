import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { readTextNow } from './env.ts'

/** Read by git as "here", which is what it takes for granted without the file. */
const commonFolder = '.\n'

/**
 * Things that keep a protected name taken where nothing is: only what is there can be mounted over.
 *
 * They are empty folders that git does not list, and go with the plugin, unless somebody put something in or another
 * process still has one mounted: taken away now, it would no longer protect there.
 */
export class Placeholders {
  readonly #made = new Set<string>()

  /** What is at `path`; `made` is an empty folder of ours. Undefined where nobody like us can make anything there. */
  take(path: string): 'there' | 'link' | 'made' | undefined {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats?.isDirectory() === true && this.#made.has(path) && readdirSync(path).length === 0) return 'made'
    if (stats !== undefined) return stats.isSymbolicLink() ? 'link' : 'there'
    try {
      if (basename(path) === 'commondir') writeFileSync(path, commonFolder, { flag: 'wx', mode: 0o444 })
      else mkdirSync(path)
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (['EACCES', 'EPERM', 'EROFS'].includes(code)) return undefined
      if (code === 'EEXIST') return this.take(path)
      throw error
    }
    this.#made.add(path)
    return basename(path) === 'commondir' ? 'there' : 'made'
  }

  release(): void {
    const mounted = this.#made.size === 0 ? '' : mountTables()
    for (const path of this.#made) if (!mounted.includes(` ${escaped(path)} `)) remove(path)
    this.#made.clear()
  }
}

/** The first part of `path` that is not there, or all of it. */
export function firstMissing(path: string, root: string): string {
  let missing = path
  for (let at = dirname(path); at !== root && at !== dirname(at); at = dirname(at)) {
    if (lstatSync(at, { throwIfNoEntry: false }) === undefined) missing = at
  }
  return missing
}

function remove(path: string): void {
  try {
    if (basename(path) !== 'commondir') rmdirSync(path)
    else if (readFileSync(path, 'utf8') === commonFolder) unlinkSync(path)
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
