import { createHash } from 'node:crypto'
import { open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionId } from '@dsh/protocol'
import { makeFolders, replaceFile } from '../../kernel/index.ts'

export interface RowFileLimits {
  /** What is longer is neither written nor read. */
  readonly maxBytes: number
  readonly maxFiles: number
}

/** One file a session in one folder: what is broken there breaks nothing else. Nothing in it is worth a sync. */
export class RowFiles {
  readonly #folder: string
  readonly #limits: RowFileLimits

  constructor(folder: string, limits: RowFileLimits) {
    this.#folder = folder
    this.#limits = limits
  }

  /** Undefined where there is nothing to read, whatever the reason. Never reads more than the limit. */
  async read(id: SessionId): Promise<string | undefined> {
    try {
      const file = await open(this.#pathOf(id))
      try {
        const { size } = await file.stat()
        return size > this.#limits.maxBytes ? undefined : await file.readFile('utf8')
      } finally {
        await file.close()
      }
    } catch {
      return undefined
    }
  }

  /** Puts `text` in the place of what was there, in one step. A text that is too long takes away what was there. */
  async write(id: SessionId, text: string): Promise<void> {
    const path = this.#pathOf(id)
    if (Buffer.byteLength(text) > this.#limits.maxBytes) return this.forget(id)
    makeFolders(this.#folder)
    await replaceFile(path, text, { mode: 0o600, isCache: true })
    if (isSweeper(path)) await this.sweep()
  }

  async forget(id: SessionId): Promise<void> {
    await rm(this.#pathOf(id), { force: true })
  }

  /** Takes away the files of all other sessions. */
  async retain(ids: Iterable<SessionId>): Promise<void> {
    const kept = new Set([...ids].map(nameOf))
    const names = await this.#names()
    const others = names.filter(name => name.endsWith(finished) && !kept.has(name))
    await Promise.all(others.map(name => rm(join(this.#folder, name), { force: true })))
  }

  /** Takes away what broken-off writes left, and the oldest files where there are too many. */
  async sweep(): Promise<void> {
    const names = await this.#names()
    const files = await Promise.all(names.map(name => this.#ageOf(name)))
    const now = Date.now()
    const dead = files.filter(({ name, time }) => name.endsWith(unfinished) && now - time > writeMs)
    const records = files.filter(({ name }) => name.endsWith(finished)).toSorted((a, b) => b.time - a.time)
    const gone = [...dead, ...records.slice(this.#limits.maxFiles)]
    await Promise.all(gone.map(({ name }) => rm(join(this.#folder, name), { force: true })))
  }

  async #names(): Promise<string[]> {
    return readdir(this.#folder).catch(() => [])
  }

  async #ageOf(name: string): Promise<{ readonly name: string; readonly time: number }> {
    const time = await stat(join(this.#folder, name)).then(
      ({ mtimeMs }) => mtimeMs,
      () => Infinity,
    )
    return { name, time }
  }

  #pathOf(id: SessionId): string {
    return join(this.#folder, nameOf(id))
  }
}

const finished = '.json'
/** What `replaceFile` gives its drafts. */
const unfinished = '.tmp'
/** No write takes that long. */
const writeMs = 3_600_000

/** An id may be longer than a name, or no name at all. */
function nameOf(id: SessionId): string {
  return `${createHash('sha256').update(id).digest('hex')}${finished}`
}

/** One session in 256: that often is enough, and no clock is needed. */
function isSweeper(path: string): boolean {
  return path.endsWith(`00${finished}`)
}
