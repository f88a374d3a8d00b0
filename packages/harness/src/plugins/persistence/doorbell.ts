import type { Timers } from './write-behind.ts'

/** One who waits, and many who may wake it. A ring that nobody waits for is kept until the next wait. */
export class Doorbell {
  readonly #timers: Timers
  #isRung = false
  #wake: (() => void) | undefined

  constructor(timers: Timers) {
    this.#timers = timers
  }

  readonly ring = (): void => {
    this.#isRung = true
    this.#wake?.()
  }

  /** Resolves at the next ring, or after `ms`. */
  async wait(ms: number): Promise<void> {
    if (!this.#isRung) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      const timer = this.#timers.set(resolve, ms)
      await promise
      this.#timers.clear(timer)
      this.#wake = undefined
    }
    this.#isRung = false
  }
}
