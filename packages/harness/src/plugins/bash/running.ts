import type { CaptureSpec, CapturedOutput, ProcessExit, SubprocessHandle } from '../subprocess/index.ts'
import { judge } from './confine.ts'
import type { Prepared } from './confine.ts'
import { LiveText } from './live.ts'
import type { BashProcess, BashResult, BashSpec } from './service.ts'

type Cause = 'timeout' | 'abort'

/** Words of commands that leave something running. A wrong guess costs a look at the processes, or a note. */
const leavesRunning = /(^|[^&<>|])&(?![&>])|\b(setsid|nohup|disown|daemon)/

/** How long what was told to end is waited for after its grace is over. */
const patienceMs = 2000
const sandboxEndMs = 1000

interface Parts {
  readonly handle: SubprocessHandle
  readonly spec: BashSpec
  readonly prepared: Prepared
  readonly shell: BashResult['shell']
  readonly graceMs: number
  readonly live: LiveOutput | undefined
}

/** One command that runs, ended by its time-out and its signal until it is detached. */
export class RunningCommand implements BashProcess {
  readonly output: { readonly stdout: CapturedOutput; readonly stderr: CapturedOutput }
  readonly result: Promise<BashResult>
  readonly #parts: Parts
  readonly #startedAt = performance.now()
  readonly #letGo: () => void
  #cause: Cause | undefined

  constructor(parts: Parts) {
    const { handle, spec } = parts
    const { stdout, stderr } = handle.collected
    if (stdout === undefined || stderr === undefined) throw new TypeError('the output was not captured')
    this.#parts = parts
    this.output = { stdout, stderr }
    const onAbort = (): void => this.#end('abort')
    const timer = setTimeout(() => {
      // A command that ended in time is not late because of what it left running.
      if (!handle.hasExited) this.#end('timeout')
    }, spec.timeoutMs)
    spec.signal?.addEventListener('abort', onAbort, { once: true })
    this.#letGo = () => {
      clearTimeout(timer)
      spec.signal?.removeEventListener('abort', onAbort)
    }
    if (spec.signal?.aborted === true) onAbort()
    this.result = this.#finish()
    // Whoever wants to know awaits `result`.
    this.result.catch(() => {})
  }

  get pid(): number {
    return this.#parts.handle.pid
  }

  isRunning(): boolean {
    return this.#parts.handle.survivors().length > 0
  }

  detach(): void {
    this.#letGo()
    this.#parts.live?.mute()
  }

  async kill(): Promise<void> {
    this.#end('abort')
    await this.#parts.handle.waitForExit(AbortSignal.timeout(this.#parts.graceMs + patienceMs))
  }

  #end(cause: Cause): void {
    this.#cause ??= cause
    this.#parts.handle.terminate()
  }

  async #finish(): Promise<BashResult> {
    const { handle, graceMs, live } = this.#parts
    try {
      const exit = await handle.done
      if (this.#cause !== undefined) await handle.waitForExit(AbortSignal.timeout(graceMs + patienceMs))
      return this.#toResult(exit, await this.#survivors(exit))
    } finally {
      this.#letGo()
      live?.end()
    }
  }

  async #survivors(exit: ProcessExit): Promise<BashResult['survivors']> {
    const { handle, spec, prepared } = this.#parts
    const mayHaveLeft = exit.pipesHeld || leavesRunning.test(spec.command) || handle.hasGroup()
    const found = mayHaveLeft ? handle.survivors() : []
    if (found.length === 0 || prepared.confined === undefined || prepared.isShared === true) return found
    // A sandbox takes what is in it along when it ends, but not in an instant.
    await handle.waitForExit(AbortSignal.timeout(sandboxEndMs))
    return handle.survivors()
  }

  #toResult(exit: ProcessExit, survivors: BashResult['survivors']): BashResult {
    const { spec, prepared, shell } = this.#parts
    const sandbox = judge(prepared, spec.command, { exit, cause: this.#cause, ...this.output })
    return {
      exitCode: exit.exitCode,
      signal: exit.signal,
      timedOut: this.#cause === 'timeout',
      aborted: this.#cause === 'abort',
      timeoutMs: spec.timeoutMs,
      durationMs: Math.round(performance.now() - this.#startedAt),
      ...this.output,
      survivors,
      shell,
      ...(sandbox !== undefined && { sandbox }),
    }
  }
}

/** Both outputs told as they come, until it is muted. */
export class LiveOutput {
  readonly stdout: LiveText
  readonly stderr: LiveText
  #isMuted = false

  constructor(tell: NonNullable<BashSpec['onOutput']>) {
    this.stdout = new LiveText(text => this.#isMuted || tell('stdout', text))
    this.stderr = new LiveText(text => this.#isMuted || tell('stderr', text))
  }

  mute(): void {
    this.#isMuted = true
  }

  end(): void {
    this.stdout.end()
    this.stderr.end()
  }
}

/** What is kept of one stream, and who hears of it meanwhile. */
export function captureFor(
  budget: Pick<CaptureSpec, 'headBytes' | 'tailBytes'>,
  live: LiveText | undefined,
): CaptureSpec {
  return live === undefined ? budget : { ...budget, onData: bytes => live.push(bytes) }
}
