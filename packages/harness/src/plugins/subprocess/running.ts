import type { EventEmitter } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { OutputCapture } from './capture.ts'
import { isAlive } from './process-table.ts'
import type { TableEntry } from './process-table.ts'
import type { CaptureSpec, LiveProcess, ProcessExit, SpawnSpec, SubprocessHandle } from './service.ts'
import { findTree, signalAll, trySignal } from './tree.ts'
import type { SendSignal } from './tree.ts'

export interface RunningSurroundings {
  /** `NAME=value` that only this tree carries in its environment. */
  readonly marker: string
  readonly send: SendSignal
  /** Says what went wrong when the program could not be started. */
  readonly explain: (error: Error) => Promise<Error>
}

/** What is known of a child process, or of one that something else started. */
export interface StartedProcess extends EventEmitter {
  readonly pid?: number | undefined
  readonly stdin: Writable | null
  readonly stdout: Readable | null
  readonly stderr: Readable | null
}

type RunningSpec = Omit<SpawnSpec, 'argv' | 'cwd' | 'env'>

const firstPollMs = 15
const longestPollMs = 120
/** How long dying may take after SIGKILL before a tree is given up. */
const killPatienceMs = 1000

/** One spawned program with the tree of processes that grows from it. */
export class RunningProcess implements SubprocessHandle {
  readonly stdin: Writable | undefined
  readonly stdout: Readable | undefined
  readonly stderr: Readable | undefined
  readonly collected: {
    readonly stdout: OutputCapture | undefined
    readonly stderr: OutputCapture | undefined
  }
  readonly done: Promise<ProcessExit>
  readonly #child: StartedProcess
  readonly #spec: RunningSpec
  readonly #around: RunningSurroundings
  readonly #settle: (exit: ProcessExit) => void
  readonly #asked = new Set<string>()
  #isReaped = false
  #isGone = false
  #ending: Promise<void> | undefined

  constructor(child: StartedProcess, spec: RunningSpec, around: RunningSurroundings) {
    this.#child = child
    this.#spec = spec
    this.#around = around
    this.stdin = spec.stdin === 'pipe' ? (child.stdin ?? undefined) : undefined
    this.stdout = spec.stdout === 'pipe' ? (child.stdout ?? undefined) : undefined
    this.stderr = spec.stderr === 'pipe' ? (child.stderr ?? undefined) : undefined
    this.collected = {
      stdout: collect(child.stdout, spec.stdout),
      stderr: collect(child.stderr, spec.stderr),
    }
    const { promise, resolve, reject } = Promise.withResolvers<ProcessExit>()
    this.done = promise
    this.#settle = exit => {
      for (const capture of this.#captures) capture.end()
      resolve(exit)
    }
    // Whoever wants to know awaits `done`.
    promise.catch(() => {})
    this.#watch(reject)
    this.#feed(spec.stdin)
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  get hasExited(): boolean {
    return this.#isReaped
  }

  terminate(): void {
    void this.end()
  }

  /** Resolves when the tree is gone, or given up after SIGKILL. */
  end(): Promise<void> {
    this.#ending ??= this.#end()
    return this.#ending
  }

  async waitForExit(signal?: AbortSignal): Promise<boolean> {
    return await this.#isGoneWithin(Infinity, signal)
  }

  survivors(): readonly LiveProcess[] {
    if (this.#isGone) return []
    return this.#tree().map(({ pid, startTime, command }) => ({ pid, startTime, command }))
  }

  hasGroup(): boolean {
    return !this.#isGone && this.pid > 0 && trySignal(-this.pid, 0, this.#around.send)
  }

  /** Without any waiting, for when the harness itself ends. */
  killNow(): void {
    if (this.hasGroup()) trySignal(-this.pid, 'SIGKILL', this.#around.send)
  }

  isGone(): boolean {
    if (this.#isGone) return true
    // Orphans that nobody buries stay in the group as zombies, so the group alone says nothing.
    this.#isGone = this.#isReaped && this.#tree().length === 0
    return this.#isGone
  }

  get #captures(): readonly OutputCapture[] {
    return [this.collected.stdout, this.collected.stderr].filter(capture => capture !== undefined)
  }

  #tree(): readonly TableEntry[] {
    const tree = findTree([this], this.#around.marker)
    if (tree.length > 0 || this.#isReaped) return tree
    // A system without /proc.
    return this.hasGroup()
      ? [{ pid: this.pid, startTime: '', command: '', parent: 0, group: this.pid, session: this.pid }]
      : []
  }

  #watch(reject: (error: Error) => void): void {
    const child = this.#child
    let exit = { exitCode: null as number | null, signal: null as NodeJS.Signals | null }
    let draining: NodeJS.Timeout | undefined
    child.once('error', (error: Error) => {
      if (child.pid !== undefined) return
      this.#isReaped = true
      this.#isGone = true
      child.removeAllListeners('close')
      void this.#around.explain(error).then(reject)
    })
    child.once('exit', (exitCode: number | null, signal: NodeJS.Signals | null) => {
      this.#isReaped = true
      exit = { exitCode, signal }
      draining = setTimeout(() => {
        this.#letGo()
        this.#settle({ ...exit, pipesHeld: true })
      }, this.#spec.drainMs)
    })
    child.once('close', () => {
      clearTimeout(draining)
      this.#settle({ ...exit, pipesHeld: false })
    })
    const { signal } = this.#spec
    if (signal === undefined) return
    const onAbort = (): void => this.terminate()
    signal.addEventListener('abort', onAbort, { once: true })
    void this.done.then(noop, noop).then(() => signal.removeEventListener('abort', onAbort))
  }

  /** Reads on, so that what holds the pipe can go on printing, but keeps nothing and holds nothing up. */
  #letGo(): void {
    const { stdout, stderr } = this.#child
    for (const stream of [this.collected.stdout && stdout, this.collected.stderr && stderr]) {
      stream?.removeAllListeners('data').resume()
      // Typed as any stream, but a pipe that can be let go.
      ;(stream as { unref?: () => void } | null | undefined)?.unref?.()
    }
  }

  #feed(stdin: SpawnSpec['stdin']): void {
    // A program need not read what it is given.
    this.#child.stdin?.on('error', noop)
    if (typeof stdin === 'object') this.#child.stdin?.end(stdin.data)
  }

  async #end(): Promise<void> {
    if (this.isGone()) return
    this.#signalTree('SIGTERM')
    if (!(await this.#isGoneSoon()) && !(await this.#isGoneWithin(this.#spec.graceMs))) {
      this.#signalTree('SIGKILL')
      const deadline = performance.now() + killPatienceMs
      while (!(await this.#isGoneWithin(firstPollMs)) && performance.now() < deadline)
        this.#signalTree('SIGKILL')
    }
    // A program that even SIGKILL does not end must not hold up who waits for it.
    if (!this.#isReaped) this.#settle({ exitCode: null, signal: 'SIGKILL', pipesHeld: true })
  }

  #signalTree(signal: NodeJS.Signals): void {
    const tree = this.#tree()
    const hasMembers = tree.some(entry => entry.group === this.pid)
    const isSpared =
      this.#spec.wraps === true && signal === 'SIGTERM' && tree.some(entry => entry.group !== this.pid)
    if (!isSpared && this.hasGroup() && (!this.#isReaped || hasMembers))
      trySignal(-this.pid, signal, this.#around.send)
    this.#signalStrays(signal)
  }

  /** Each stray is asked once to end: a program may take a second time for another wish. */
  #signalStrays(signal: NodeJS.Signals): void {
    const strays = this.#tree().filter(entry => entry.group !== this.pid)
    const isNew = ({ pid, startTime }: TableEntry): boolean => !this.#asked.has(`${pid}.${startTime}`)
    signalAll(signal === 'SIGKILL' ? strays : strays.filter(isNew), signal, this.#around.send)
    for (const { pid, startTime } of strays) this.#asked.add(`${pid}.${startTime}`)
  }

  /** A process may leave the group just before the group is signalled, or be forked just after. */
  async #isGoneSoon(): Promise<boolean> {
    for (let round = 0; round < 3; round++) {
      if (await this.#isGoneWithin(firstPollMs)) return true
      this.#signalStrays('SIGTERM')
    }
    return false
  }

  /** Looks at all processes only when none of those that were found last is left. */
  async #isGoneWithin(ms: number, signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + ms
    let known: readonly TableEntry[] = []
    for (let wait = firstPollMs; ; wait = longer(wait)) {
      known = known.filter(isAlive)
      if (known.length === 0) {
        if (this.isGone()) return true
        known = this.#tree()
      }
      const left = deadline - performance.now()
      if (left <= 0 || signal?.aborted === true) return false
      await pause(Math.min(wait, left), signal)
    }
  }
}

function collect(stream: Readable | null, spec: 'pipe' | 'inherit' | CaptureSpec): OutputCapture | undefined {
  if (typeof spec === 'string' || stream === null) return undefined
  const capture = new OutputCapture(spec)
  const { onData } = spec
  stream.on('data', (bytes: Uint8Array) => {
    capture.push(bytes)
    onData?.(bytes)
  })
  stream.on('error', noop)
  return capture
}

function longer(ms: number): number {
  return Math.min(ms * 2, longestPollMs)
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(finish, ms)
    signal?.addEventListener('abort', finish, { once: true })
    function finish(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
  })
}

function noop(): void {}
