import { readFile, stat } from 'node:fs/promises'
import { platform } from 'node:os'
import { HarnessError, isFields, isText, messageOf, replaceFile, underFileLock } from '../../kernel/index.ts'
import type { TrustEntry, TrustList, TrustPart } from './service.ts'

const version = 1
/** More than all decisions of a life; it is read at each start. */
const largestFile = 16 * 1024 * 1024

/** The file that holds all decisions. Read anew each time: another program may have changed it. */
export class TrustFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  async read(): Promise<TrustList> {
    try {
      const stats = await stat(this.path)
      // Whoever opens a pipe waits for its other end.
      if (!stats.isFile()) return this.#broken('it is no file')
      if (stats.size > largestFile)
        return this.#broken(`it has ${stats.size} bytes, more than ${largestFile}`)
      if (platform() !== 'win32' && (stats.mode & 0o022) !== 0) return this.#broken('others may write it')
      return this.#parse(await readFile(this.path, 'utf8'))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { entries: [] }
      return this.#broken(`it cannot be read: ${messageOf(error)}`)
    }
  }

  /** Throws TRUST_BROKEN, with nothing changed, where what is there cannot be understood. */
  async change(decide: (entries: readonly TrustEntry[]) => readonly TrustEntry[]): Promise<void> {
    await underFileLock(this.path, async () => {
      const { entries, problem } = await this.read()
      if (problem !== undefined) throw new HarnessError('TRUST_BROKEN', problem)
      const text = JSON.stringify({ version, folders: decide(entries) }, null, 2)
      await replaceFile(this.path, `${text}\n`, { mode: 0o600 })
    })
  }

  #parse(text: string): TrustList {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      return this.#broken(`it is no JSON: ${messageOf(error)}`)
    }
    if (!isFields(value) || value['version'] !== version) return this.#broken(`its version is not ${version}`)
    const { folders } = value
    if (!Array.isArray(folders)) return this.#broken('folders: is no list')
    const entries: TrustEntry[] = []
    for (const [index, folder] of folders.entries()) {
      const entry = readEntry(folder)
      if (entry === undefined) return this.#broken(`folders[${index}]: is no decision`)
      entries.push(entry)
    }
    return { entries }
  }

  #broken(why: string): TrustList {
    return { entries: [], problem: `"${this.path}" counts for nothing: ${why}; mend or remove it` }
  }
}

function readEntry(value: unknown): TrustEntry | undefined {
  if (!isFields(value)) return undefined
  const { path, state, parts } = value
  if (!isText(path) || (!path.startsWith('/') && !/^[A-Za-z]:[\\/]/.test(path))) return undefined
  if ((state !== 'trusted' && state !== 'untrusted') || !Array.isArray(parts)) return undefined
  const read = parts.map(readPart)
  return read.every(part => part !== undefined) ? { path, state, parts: read } : undefined
}

function readPart(value: unknown): TrustPart | undefined {
  if (!isFields(value)) return undefined
  const { path, sha256 } = value
  return isText(path) && typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256)
    ? { path, sha256 }
    : undefined
}
