import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Medium } from '../../src/plugins/persistence/index.ts'
import type { Task } from './child.ts'
import { openMedium } from './media.ts'
import type { MediumName } from './media.ts'

const childPath = fileURLToPath(new URL('child.ts', import.meta.url))
const longestLifeMs = 60_000
/** Half of a short life would go into reading the same sources again. */
const compileCache = join(tmpdir(), 'dsh-crash-cache')

/** A home of sessions, and programs in it that can be killed. */
export class Victim {
  readonly medium: MediumName
  readonly home = mkdtempSync(join(tmpdir(), 'crash-'))
  readonly journal = join(this.home, 'journal')
  readonly #children: ChildProcess[] = []
  #markers = 0

  constructor(medium: MediumName) {
    this.medium = medium
    writeFileSync(this.journal, '')
  }

  /** Runs a program until it stands still, and gives the point it stands at, or 'end'. */
  async run(
    task: Pick<Task, 'role'> & Partial<Task>,
  ): Promise<{ readonly child: ChildProcess; readonly at: string }> {
    const marker = join(this.home, `marker-${++this.#markers}`)
    writeFileSync(marker, '')
    const whole: Task = { medium: this.medium, home: this.home, journal: this.journal, marker, ...task }
    const next = nextText(marker)
    const child = spawn(process.execPath, ['--conditions=dsh-source', childPath, JSON.stringify(whole)], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
      timeout: longestLifeMs,
      killSignal: 'SIGKILL',
    })
    this.#children.push(child)
    const ended = once(child, 'exit').then(([code, signal]) => {
      throw new Error(`the program ended with ${String(signal ?? code)} before it stood still`)
    })
    try {
      return { child, at: await Promise.race([next.text, ended]) }
    } finally {
      ended.catch(() => undefined)
      next.close()
    }
  }

  /** Resolves once so many lines more stand in the journal. */
  async hasWritten(lines: number): Promise<void> {
    const count = (): number =>
      readFileSync(this.journal).reduce((sum, byte) => sum + (byte === 10 ? 1 : 0), 0)
    const enough = count() + lines
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = (): void => {
      if (count() >= enough) resolve()
    }
    const watcher = watch(this.journal, look)
    look()
    await promise
    watcher.close()
  }

  open(): Medium {
    return openMedium(this.medium, this.home)
  }

  async remove(): Promise<void> {
    for (const child of this.#children) await killed(child)
    rmSync(this.home, { recursive: true })
  }
}

/** Resolves once the program is gone. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

/** The first text that is written to an empty file. */
function nextText(path: string): { readonly text: Promise<string>; close(): void } {
  const { promise, resolve } = Promise.withResolvers<string>()
  const look = (): void => {
    const text = readFileSync(path, 'utf8')
    if (text !== '') resolve(text)
  }
  const watcher = watch(path, look)
  return { text: promise, close: () => watcher.close() }
}
