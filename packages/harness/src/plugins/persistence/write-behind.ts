/** Clock of a write-behind queue. */
export interface Timers {
  set(callback: () => void, ms: number): unknown
  clear(timer: unknown): void
}

export interface WriteBehindOptions {
  /** There is something that no write has taken yet. */
  readonly hasMore: () => boolean
  /**
   * Writes all there is at this moment. Resolves once that is durable; where it rejects, `hasMore` is true again. Never
   * called while an earlier call is open.
   */
  readonly write: () => Promise<void>
  /** How long the first of a batch waits for company. */
  readonly delayMs: number
  readonly timers: Timers
  /** A write that nobody waited for failed. It is tried again with the next `touch` or `flush`. */
  readonly onFailure: (error: unknown) => void
}

/**
 * Writes what grows elsewhere, in batches and in order.
 *
 * The first `touch` opens a window of fixed length; later ones join it without moving its end. The window bounds only
 * the waiting that is meant, not what the medium takes.
 */
export class WriteBehind {
  readonly #options: WriteBehindOptions
  #timer: unknown
  /** A window ended while a write was open. */
  #isDue = false
  #active: Promise<void> | undefined
  #barrier: Promise<void> | undefined

  constructor(options: WriteBehindOptions) {
    this.#options = options
  }

  /** There is more to write, in a while. */
  touch(): void {
    if (this.#timer !== undefined || this.#isDue || this.#barrier !== undefined) return
    this.#timer = this.#options.timers.set(this.#expire, this.#options.delayMs)
  }

  /** Writes until nothing is left, what comes meanwhile too. Callers share one run. Rejects with what a write failed at. */
  flush(): Promise<void> {
    this.#barrier ??= this.#drain()
    return this.#barrier
  }

  /** Opens no window any more; a flush still writes. */
  stop(): void {
    this.#isDue = false
    if (this.#timer === undefined) return
    this.#options.timers.clear(this.#timer)
    this.#timer = undefined
  }

  readonly #expire = (): void => {
    this.#timer = undefined
    if (this.#active === undefined) this.#writeAlone()
    else this.#isDue = true
  }

  #writeAlone(): void {
    this.#isDue = false
    if (!this.#options.hasMore()) return
    this.#write().then(
      () => {
        if (this.#isDue) this.#writeAlone()
      },
      (error: unknown) => {
        this.#isDue = false
        this.#options.onFailure(error)
      },
    )
  }

  async #drain(): Promise<void> {
    this.stop()
    try {
      // Whatever comes of a write that is under way: what it fails at is tried again here.
      if (this.#active !== undefined) await this.#active.catch(() => undefined)
      else await Promise.resolve()
      while (this.#options.hasMore()) {
        this.stop()
        await this.#write()
      }
    } finally {
      // In the job that saw nothing left: whoever comes from now on opens a window.
      this.#barrier = undefined
    }
  }

  async #write(): Promise<void> {
    this.#active = this.#options.write()
    try {
      await this.#active
    } finally {
      this.#active = undefined
    }
  }
}
