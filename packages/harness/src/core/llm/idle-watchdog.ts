import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import { llmError } from './failure.ts'
import type { LlmError } from './failure.ts'

export interface IdleWatchdogOptions {
  /** How long one read may take; 120 s where it is left out. */
  readonly limitMs?: number
  /** The caller's; what it aborts stays ABORTED. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Ends reads from a provider that has gone silent.
 *
 * The clock runs only while a read is outstanding, so a slow consumer costs no time, and whatever arrives starts it
 * anew. A read that takes too long fails with TIMEOUT, one that the caller aborts with ABORTED, at once in both cases:
 * the source is told, not waited for.
 */
export class IdleWatchdog {
  /** For the request itself: aborts with the caller's signal, or when the limit is hit. */
  readonly signal: AbortSignal
  readonly #limitMs: number
  readonly #caller: AbortSignal | undefined
  readonly #silence = new AbortController()
  #failure: LlmError | undefined

  /** Throws a RangeError for a limit that no timer can keep. */
  constructor({ limitMs = 120_000, signal }: IdleWatchdogOptions = {}) {
    if (!(limitMs > 0 && limitMs <= MAX_TIMER_DELAY_MS))
      throw new RangeError(`idle limit ${limitMs} is not above 0 and at most ${MAX_TIMER_DELAY_MS} ms`)
    this.#limitMs = limitMs
    this.#caller = signal
    this.signal =
      signal === undefined ? this.#silence.signal : AbortSignal.any([signal, this.#silence.signal])
  }

  /** The outcome of one read, or the failure that came first. */
  guard<T>(reading: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        this.#caller?.removeEventListener('abort', abort)
      }
      const stop = (failure: LlmError): void => {
        settle()
        this.#failure ??= failure
        reject(this.#failure)
      }
      const abort = (): void =>
        stop(llmError('ABORTED', 'the request was aborted', { cause: this.#caller?.reason }))
      const timer = setTimeout(() => {
        stop(llmError('TIMEOUT', `the provider sent nothing for ${this.#limitMs / 1000} s, the idle limit`))
        this.#silence.abort(this.#failure)
      }, this.#limitMs)
      this.#caller?.addEventListener('abort', abort, { once: true })
      reading.then(
        value => {
          settle()
          resolve(value)
        },
        (error: unknown) => {
          settle()
          reject(this.#failure ?? error)
        },
      )
      if (this.#failure !== undefined) stop(this.#failure)
      else if (this.#caller?.aborted === true) abort()
    })
  }

  /** `source` with each of its reads guarded. One that stopped answering is closed without waiting for it. */
  async *watch<T>(source: AsyncIterable<T>): AsyncGenerator<T, void> {
    const iterator = source[Symbol.asyncIterator]()
    let state: 'reading' | 'between' | 'ended' = 'between'
    try {
      for (;;) {
        state = 'reading'
        const result = await this.guard(iterator.next())
        state = result.done === true ? 'ended' : 'between'
        if (result.done === true) return
        yield result.value
      }
    } finally {
      if (state === 'between') await iterator.return?.()
      if (state === 'reading') iterator.return?.().catch(() => {})
    }
  }
}

export function idleWatchdog(options?: IdleWatchdogOptions): IdleWatchdog {
  return new IdleWatchdog(options)
}
