import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Medium } from '../../src/plugins/persistence/index.ts'
import { watchMedium } from '../../src/testing/index.ts'
import type { Task } from './child.ts'
import { Journal } from './journal.ts'
import { openMedium } from './media.ts'
import type { MediumName } from './media.ts'

const childPath = fileURLToPath(new URL('child.ts', import.meta.url))
const longestLifeMs = 60_000
/** Half of a short life would go into reading the same sources again. */
const compileCache = join(tmpdir(), 'dsh-crash-cache')

export interface Talker {
  readonly child: ChildProcess
  say(line: string): void
  /** Its next line. */
  hear(): Promise<string>
}

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
    const whole = this.#taskOf(task)
    const next = nextText(whole.marker)
    const child = this.#spawn(whole, 'ignore')
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

  /** Starts a program that is talked to by lines. */
  talkTo(task: Pick<Task, 'role'> & Partial<Task>): Talker {
    const child = this.#spawn(this.#taskOf(task), 'pipe')
    const lines = createInterface({ input: child.stdout as Readable })[Symbol.asyncIterator]()
    return {
      child,
      say: line => void child.stdin?.write(`${line}\n`),
      async hear() {
        const { value, done } = await lines.next()
        return done === true ? 'nothing' : value
      },
    }
  }

  #taskOf(task: Pick<Task, 'role'> & Partial<Task>): Task {
    const marker = join(this.home, `marker-${++this.#markers}`)
    writeFileSync(marker, '')
    return { medium: this.medium, home: this.home, journal: this.journal, marker, ...task }
  }

  #spawn(task: Task, stdio: 'pipe' | 'ignore'): ChildProcess {
    const child = spawn(process.execPath, ['--conditions=dsh-source', childPath, JSON.stringify(task)], {
      stdio: [stdio, stdio, 'inherit'],
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
      timeout: longestLifeMs,
      killSignal: 'SIGKILL',
    })
    this.#children.push(child)
    return child
  }

  /** Resolves once so many lines more stand in the journal, or the program that writes them has ended. */
  async hasWritten(lines: number, child: ChildProcess): Promise<void> {
    const count = (): number =>
      readFileSync(this.journal).reduce((sum, byte) => sum + (byte === 10 ? 1 : 0), 0)
    const enough = count() + lines
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = (): void => {
      if (count() >= enough || hasEnded(child)) resolve()
    }
    const watcher = watch(this.journal, look)
    child.once('exit', look)
    look()
    await promise
    watcher.close()
  }

  open(): Medium {
    return openMedium(this.medium, this.home)
  }

  /** What is added by looking is expected by those who look later. */
  watched(): Medium {
    return watchMedium(this.open(), new Journal(this.journal))
  }

  async remove(): Promise<void> {
    for (const child of this.#children) await killed(child)
    rmSync(this.home, { recursive: true })
  }
}

/** Resolves once the program is gone. */
export async function killed(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
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
