import { OutputCapture } from '../subprocess/index.ts'
import type { PtySend, PtySendOperation, PtySendResult } from './service.ts'

/** Kept of what comes after a send; what is more goes from the middle. */
const kept = { headBytes: 2 ** 20, tailBytes: 2 ** 20 }

/** One send while it goes on, and what came of it. */
export class Send implements PtySendOperation {
  readonly request: PtySend
  readonly output = new OutputCapture(kept)
  readonly result: Promise<PtySendResult>
  /** The wait for input that went on before. */
  waitBefore: string | undefined
  lastWait: string | undefined
  isAtPrompt = false
  /** False while what ran before is still to be interrupted. */
  isStarted = true
  /** A command that is run has said that it began. */
  isBegun: boolean
  readonly startedAt: number
  lastOutputAt: number
  /** Set once it was told to end. */
  cancelledAt: number | undefined
  readonly #settle: (result: PtySendResult) => void
  #isSettled = false

  constructor(request: PtySend, now: number) {
    this.request = request
    this.isBegun = request.form !== 'run'
    this.startedAt = now
    this.lastOutputAt = now
    const { promise, resolve } = Promise.withResolvers<PtySendResult>()
    this.result = promise
    this.#settle = resolve
  }

  get form(): 'type' | 'run' {
    return this.request.form ?? 'type'
  }

  get isSettled(): boolean {
    return this.#isSettled
  }

  take(text: string): void {
    this.output.push(Buffer.from(text))
  }

  finish(result: PtySendResult): void {
    this.#isSettled = true
    this.output.end()
    this.#settle(result)
  }
}
