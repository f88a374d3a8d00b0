import type { SessionId } from '@dsh/protocol'
import type { AsyncDisposer, Context } from '../../kernel/index.ts'

export interface LifetimeOptions {
  /** Of the caller; counts until `detachCaller`. */
  readonly signal?: AbortSignal | undefined
  /** What the unloading of an owner waits for. */
  onUnload?(): Promise<void>
}

/**
 * How long the making of an agent may go on: until the caller aborts, or one of the owning plugins unloads, whichever
 * comes first. The signal's reason is always an Error.
 */
export class Lifetime {
  readonly #id: SessionId
  readonly #abort = new AbortController()
  readonly #caller: AbortSignal | undefined
  readonly #onCallerAbort = (): void => this.end(this.#caller?.reason)
  readonly #effects: AsyncDisposer[]

  constructor(id: SessionId, owners: readonly Context[], options: LifetimeOptions = {}) {
    this.#id = id
    this.#caller = options.signal
    const onUnload = (owner: Context) => async (): Promise<void> => {
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
    const work = Promise.resolve(start())
    try {
      const value = await Promise.race([work, ended])
      return value
    } catch (error) {
      if (signal.aborted) work.then(late, () => {})
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
    // Their undo steps share one end, which reports its own failure.
    for (const dispose of this.#effects) dispose().catch(() => {})
  }
}
