/** Runs that nobody waits for, until it ends: then they are told to stop, and waited for, with those that come meanwhile. */
export class DetachedRuns {
  readonly #ending = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  /** `run` must not reject. */
  add(run: (signal: AbortSignal) => Promise<unknown>): void {
    const running = run(this.#ending.signal)
    this.#running.add(running)
    void running.finally(() => this.#running.delete(running))
  }

  /** Resolves when none runs any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  async end(): Promise<void> {
    this.#ending.abort()
    await this.settled()
  }
}
