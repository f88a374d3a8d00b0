import { unlessAborted } from './unless-aborted.ts'

/** Runs jobs of one key one after another; keys do not wait for each other, and a failure stops nobody behind it. */
export class KeyedLocks<Key> {
  readonly #tails = new Map<Key, Promise<void>>()

  /** A job that still waits when `signal` aborts never runs, and rejects with its reason at once. */
  run<T>(key: Key, job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.#tails.get(key)
    const result =
      before === undefined ? begin(job, signal) : unlessAborted(before, signal).then(() => begin(job, signal))
    const tail = settle(before, result).then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    this.#tails.set(key, tail)
    return result
  }

  /** Resolves when nothing runs or waits any more. */
  async settled(): Promise<void> {
    while (this.#tails.size > 0) await Promise.all(this.#tails.values())
  }
}

async function begin<T>(job: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  signal?.throwIfAborted()
  return await job()
}

/** Never rejects. */
async function settle(before: Promise<void> | undefined, result: Promise<unknown>): Promise<void> {
  if (before !== undefined) await before
  await result.catch(() => undefined)
}
