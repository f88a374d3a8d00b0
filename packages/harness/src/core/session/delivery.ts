import { SessionError } from './errors.ts'

/** No honest chain of observers is that long; one that answers each event with another would never end. */
const longestChain = 1000

/**
 * Tells of one event after the other, in the order of the log.
 *
 * An event that an observer appends is in the log at once, and told of when the one before it has reached everybody.
 */
export class Delivery {
  readonly #waiting: { readonly notify: () => void; readonly chain: number }[] = []
  /** How many observers stand between the event now told of and one that was appended by nobody's doing. */
  #chain = 0
  #running = false

  get isRunning(): boolean {
    return this.#running
  }

  /** Throws REENTRANT_APPEND where the event would be one too many in a chain of answers. */
  assertOpen(type: string): void {
    if (this.#chain < longestChain) return
    throw new SessionError(
      'REENTRANT_APPEND',
      `"${type}" is refused: observers answered each other's events ${longestChain} times in a row`,
    )
  }

  run(notify: () => void): void {
    if (this.#running) {
      this.#waiting.push({ notify, chain: this.#chain + 1 })
      return
    }
    this.#running = true
    try {
      notify()
      if (this.#waiting.length > 0) this.#drain()
    } finally {
      this.#waiting.length = 0
      this.#chain = 0
      this.#running = false
    }
  }

  #drain(): void {
    // The list grows while it is worked off.
    for (const { notify, chain } of this.#waiting) {
      this.#chain = chain
      notify()
    }
  }
}
