import { once } from 'node:events'
import { constants } from 'node:os'
import type { Io, StopSignal } from '../io.ts'

/** What the process is told to stop by: the first signal cancels, the second ends the process. */
export class Stop {
  /** The first signal. */
  received: StopSignal | undefined
  readonly #controller = new AbortController()
  readonly #forget: () => void
  readonly #timers: NodeJS.Timeout[] = []

  constructor(io: Io) {
    this.#forget = io.onSignal(signal => {
      if (this.received !== undefined) return io.exit(codeOf(signal))
      this.received = signal
      this.#controller.abort(new Error(`stopped by ${signal}`))
    })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** 128 and the number of the signal, as a shell counts; undefined where none came. */
  get exitCode(): number | undefined {
    return this.received === undefined ? undefined : codeOf(this.received)
  }

  /** Resolves `ms` after the first signal; never without one. */
  async graceOf(ms: number): Promise<void> {
    if (!this.signal.aborted) await once(this.signal, 'abort')
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#timers.push(setTimeout(resolve, ms))
    await promise
  }

  /** Signals act as without this. */
  forget(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#forget()
  }
}

function codeOf(signal: StopSignal): number {
  return 128 + constants.signals[signal]
}
