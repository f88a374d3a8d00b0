/** Runs jobs of one key one after another, within this process. */
export class KeyedLocks {
  readonly #tails = new Map<string, Promise<void>>()

  async run<T>(key: string, job: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    const { promise: tail, resolve } = Promise.withResolvers<void>()
    this.#tails.set(key, tail)
    try {
      await before
      return await job()
    } finally {
      resolve()
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    }
  }
}
