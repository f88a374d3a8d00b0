import { randomBytes } from 'node:crypto'
import type { ConfinedArgv } from '../sandbox/index.ts'
import type { Subprocess, SubprocessHandle } from '../subprocess/index.ts'
import { Guest } from './guest.ts'
import { GuestHandle } from './guest-handle.ts'
import { childrenOf, findInsiders, leaderOutside, mountsOf } from './inside.ts'
import type { Insiders } from './inside.ts'
import type { Pipe, Pipes } from './pipes.ts'
import { encodeRequest, readNews } from './runner.ts'
import type { RunnerNews } from './runner.ts'
import type { RunningShell, ShellCommand } from './service.ts'

export interface WarmLimits {
  /** Milliseconds that a sandbox may take to take requests, or to begin a command. */
  readonly beginMs: number
  readonly commands: number
}

export interface WarmPlace {
  readonly subprocess: Subprocess
  readonly pipes: Pipes
  readonly limits: WarmLimits
  /** No command runs any more. */
  readonly onIdle: () => void
}

interface Waiting {
  readonly command: ShellCommand
  readonly count: number
  readonly pipe: Pipe
  /** What was there before. */
  readonly left: ReadonlySet<number>
  readonly settle: (shell: RunningShell | undefined) => void
}

interface Ready extends Insiders {
  readonly mark: string
  readonly mounts: string
}

const endMs = 300

/** One sandbox that runs commands for who asks, until it is closed, dies or is asked to end. */
export class WarmSandbox {
  /** Resolves when all that was in it is gone. */
  readonly ended: Promise<void>
  readonly confined: ConfinedArgv
  readonly #subprocess: Subprocess
  readonly #handle: SubprocessHandle
  readonly #pipes: Pipes
  readonly #limits: WarmLimits
  readonly #onIdle: () => void
  readonly #waiting = new Map<string, Waiting>()
  readonly #guests = new Map<string, Guest>()
  readonly #ready = Promise.withResolvers<void>()
  #inside: Ready | undefined
  #text = ''
  #count = 0
  #isEnding = false
  #isGone = false

  /** `confined` wraps the runner; `env` goes on top of what all processes get. */
  constructor(
    { subprocess, pipes, limits, onIdle }: WarmPlace,
    confined: ConfinedArgv,
    { cwd, env }: Pick<ShellCommand, 'cwd' | 'env'>,
  ) {
    this.#onIdle = onIdle
    this.#subprocess = subprocess
    this.#pipes = pipes
    this.#limits = limits
    this.confined = { ...confined, runnerFailureRules: [] }
    this.#handle = subprocess.spawn({
      argv: confined.argv,
      cwd,
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: { headBytes: 0, tailBytes: 0 },
      graceMs: endMs,
      drainMs: endMs,
      env,
    })
    this.#ready.promise.catch(noop)
    this.#handle.stdout?.setEncoding('latin1').on('data', (text: string) => this.#hear(text))
    this.ended = this.#handle.done.then(noop, noop).then(() => this.#finish())
  }

  /** Rejects where it does not get that far. */
  async ready(): Promise<void> {
    const timer = setTimeout(() => this.kill(), this.#limits.beginMs)
    try {
      await this.#ready.promise
    } finally {
      clearTimeout(timer)
    }
  }

  get folder(): string {
    return this.#pipes.folder
  }

  get isOpen(): boolean {
    return this.#live !== undefined && !this.#isEnding
  }

  get commands(): number {
    return this.#guests.size + this.#waiting.size
  }

  /** Whether the world in it is the one that was made: what is moved or replaced outside takes its mount along. */
  get isIntact(): boolean {
    const inside = this.#live
    return inside !== undefined && mountsOf(inside.runner) === inside.mounts
  }

  /** Processes that commands have left in it, by their numbers outside. */
  left(): number[] {
    const inside = this.#live
    return inside === undefined ? [] : childrenOf(inside.first).filter(pid => pid !== inside.runner)
  }

  /** Undefined where nothing of the command has run or will. */
  async run(command: ShellCommand): Promise<RunningShell | undefined> {
    if (!this.isOpen || this.commands >= this.#limits.commands) return undefined
    const pipe = this.#pipes.take()
    if (pipe === undefined) return undefined
    const id = randomBytes(8).toString('hex')
    const { promise, resolve } = Promise.withResolvers<RunningShell | undefined>()
    const waiting = { command, count: ++this.#count, pipe, left: new Set(this.left()), settle: resolve }
    this.#waiting.set(id, waiting)
    // A runner that is stopped would begin it at any time: it has to be gone before the command runs elsewhere.
    const timer = setTimeout(() => this.kill(), this.#limits.beginMs)
    this.#handle.stdin?.write(encodeRequest({ id, count: waiting.count, pipe: pipe.name, ...command }))
    const shell = await promise
    clearTimeout(timer)
    this.#pipes.forget(pipe)
    return shell
  }

  /** What is gone has no numbers: they may be those of others. */
  get #live(): Ready | undefined {
    return this.#isGone ? undefined : this.#inside
  }

  /** Takes no more commands; ends when the last one has. */
  retire(): void {
    this.#isEnding = true
    if (this.commands === 0) this.#handle.stdin?.end()
  }

  /** Ends it with all that runs in it. */
  async close(): Promise<void> {
    this.#isEnding = true
    this.#handle.stdin?.end()
    const timer = setTimeout(() => this.kill(), endMs)
    await this.ended
    clearTimeout(timer)
  }

  kill(): void {
    this.#isEnding = true
    this.#handle.terminate()
  }

  #hear(text: string): void {
    const lines = (this.#text + text).split('\n')
    this.#text = lines.pop() ?? ''
    for (const line of lines) {
      const news = readNews(line)
      if (news !== undefined) this.#act(news)
    }
  }

  #act(news: RunnerNews): void {
    if (news.kind === 'ready') return this.#open(news.mark)
    const { id, kind, value } = news
    if (kind === 'begun') return this.#adopt(id, value)
    if (kind === 'refused') return this.#refuse(id)
    this.#guests.get(id)?.end(value)
    this.#guests.delete(id)
    if (this.commands > 0) return
    if (this.#isEnding) this.#handle.stdin?.end()
    else this.#onIdle()
  }

  #open(mark: string): void {
    const insiders = findInsiders(this.#handle.pid)
    const mounts = insiders && mountsOf(insiders.runner)
    if (insiders === undefined || mounts === undefined) return this.kill()
    this.#inside = { ...insiders, mark, mounts }
    this.#ready.resolve()
  }

  #adopt(id: string, number: number): void {
    const waiting = this.#waiting.get(id)
    const inside = this.#inside
    if (waiting === undefined || inside === undefined) return
    const { command, pipe, count, left, settle } = waiting
    const { stdout, stderr, graceMs, drainMs } = command
    const guest = new Guest(pipe, () => this.#live && leaderOutside(this.#live, number))
    this.#waiting.delete(id)
    this.#guests.set(id, guest)
    const marker = `${inside.mark}.${count}`
    const adopted = this.#subprocess.adopt(guest, { stdout, stderr, graceMs, drainMs, marker })
    const handle = new GuestHandle(adopted, guest, {
      graceMs,
      hasLeft: () => this.left().some(pid => !left.has(pid)),
      giveUp: () => this.kill(),
    })
    settle({ handle, confined: this.confined })
  }

  /** Nothing of it has run. */
  #refuse(id: string): void {
    const { pipe, settle } = this.#waiting.get(id) ?? {}
    this.#waiting.delete(id)
    pipe?.stdout.destroy()
    pipe?.stderr.destroy()
    settle?.(undefined)
  }

  #finish(): Promise<void> {
    this.#isGone = true
    this.#ready.reject(new Error('the sandbox ended'))
    for (const id of this.#waiting.keys()) this.#refuse(id)
    for (const guest of this.#guests.values()) guest.killed()
    this.#guests.clear()
    return this.#pipes.remove()
  }
}

function noop(): void {}
