import type { SessionId } from '@dsh/protocol'
import type { AsyncDisposer, Context } from '../../kernel/index.ts'

export interface LeaseOptions {
  /** Of the caller; counts until `detachCaller`. */
  readonly signal?: AbortSignal | undefined
  /** What the unloading of an owner waits for. */
  onUnload?(): Promise<void>
}

/**
 * How long an agent may be made, and then be there: until its caller aborts, or one of the owning plugins unloads,
 * whichever comes first. The signal's reason is always an Error.
 */
export class Lease {
  readonly #id: SessionId
  readonly #abort = new AbortController()
  readonly #caller: AbortSignal | undefined
  readonly #onCallerAbort = (): void => this.end(this.#caller?.reason)
  readonly #effects: AsyncDisposer[]
  #isReleased = false

  constructor(id: SessionId, owners: readonly Context[], options: LeaseOptions = {}) {
    this.#id = id
    this.#caller = options.signal
    const onUnload = (owner: Context) => async (): Promise<void> => {
      if (this.#isReleased) return
      this.end(new Error(`plugin "${owner.fiber.name}", which owns agent "${id}", is unloading`))
      await options.onUnload?.()
    }
    this.#effects = owners.map(owner => owner.effect((): AsyncDisposer => onUnload(owner), `agent ${id}`))
    this.#caller?.addEventListener('abort', this.#onCallerAbort)
    if (this.#caller?.aborted === true) this.#onCallerAbort()
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  end(reason: unknown): void {
    const isError = reason instanceof Error || reason instanceof DOMException
    const error = isError ? reason : new Error(`agent "${this.#id}" creation aborted`, { cause: reason })
    this.#abort.abort(error)
  }

  /** What `start` gives, unless this ends first; a result that comes too late goes to `late`. */
  async race<T>(start: () => T | Promise<T>, late?: (value: T) => void): Promise<T> {
    const { signal } = this
    signal.throwIfAborted()
    const { promise: ended, reject } = Promise.withResolvers<never>()
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort)
    const work = (async () => start())()
    try {
      return await Promise.race([work, ended])
    } catch (error) {
      if (signal.aborted) work.then(late).catch(() => {})
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** The caller has what it asked for; its signal ends nothing any more. */
  detachCaller(): void {
    this.#caller?.removeEventListener('abort', this.#onCallerAbort)
  }

  /** Leaves the owners alone from now on. */
  release(): void {
    this.detachCaller()
    this.#isReleased = true
    // An unload that is under way has its own end, and its own way to say that it failed.
    for (const dispose of this.#effects) dispose().catch(() => {})
  }
}
