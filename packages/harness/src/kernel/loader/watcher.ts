import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import type { Context } from '../context.ts'

const settleMs = 50

/**
 * Tells which of the followed files really changed.
 *
 * The system's notices are hints only: they come twice, late, or for untouched files. So folders are watched, notices
 * are gathered for a moment, and what counts is whether size, time or inode differ from what was seen last.
 */
export class FileWatcher {
  readonly #ctx: Context
  readonly #changed: (files: readonly string[]) => Promise<void>
  readonly #folders = new Map<string, FSWatcher>()
  readonly #seen = new Map<string, string>()
  #stopTimer: (() => void) | undefined
  #closed = false
  #busy: Promise<void> = Promise.resolve()

  /** Ends with the plugin of `ctx`. */
  constructor(ctx: Context, changed: (files: readonly string[]) => Promise<void>) {
    this.#ctx = ctx
    this.#changed = changed
    ctx.effect(() => () => this.#close(), 'file watcher')
  }

  /** Replaces the set of files. A file that is new to the set counts as unchanged. */
  follow(files: Iterable<string>): void {
    if (this.#closed) return
    const wanted = new Set(files)
    for (const file of this.#seen.keys()) if (!wanted.has(file)) this.#seen.delete(file)
    const added = [...wanted].filter(file => !this.#seen.has(file))
    for (const file of added) this.#seen.set(file, 'unknown')
    this.#busy = this.#busy.then(async () => {
      for (const file of added) this.#seen.set(file, await signature(file))
    })
    this.#watchFolders(new Set([...wanted].map(file => path.dirname(file))))
  }

  #watchFolders(folders: ReadonlySet<string>): void {
    for (const [folder, watcher] of this.#folders) {
      if (folders.has(folder)) continue
      watcher.close()
      this.#folders.delete(folder)
    }
    for (const folder of folders) {
      if (this.#folders.has(folder)) continue
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#hint())
        watcher.on('error', () => this.#folders.delete(folder))
        this.#folders.set(folder, watcher)
      } catch (error) {
        this.#ctx.fiber.report(error, 'file watcher')
      }
    }
  }

  #hint(): void {
    if (this.#closed) return
    this.#stopTimer ??= this.#ctx.setTimeout(() => {
      this.#stopTimer = undefined
      this.#busy = this.#busy.then(() => this.#compare())
    }, settleMs)
  }

  async #compare(): Promise<void> {
    const changed: string[] = []
    for (const [file, known] of this.#seen) {
      const now = await signature(file)
      if (now === known) continue
      this.#seen.set(file, now)
      changed.push(file)
    }
    if (changed.length > 0) await this.#changed(changed)
  }

  #close(): void {
    this.#closed = true
    this.#stopTimer?.()
    for (const watcher of this.#folders.values()) watcher.close()
    this.#folders.clear()
  }
}

async function signature(file: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(file, { bigint: true })
    return `${ino}:${size}:${mtimeNs}`
  } catch {
    return 'absent'
  }
}
