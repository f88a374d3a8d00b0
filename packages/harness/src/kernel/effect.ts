import { joinErrors } from './errors.ts'

/** Undoes something, once; a second call gives what the first gave. */
export type Disposer = () => void
export type AsyncDisposer = () => Promise<void>
type AnyDisposer = () => void | Promise<void>

type Collected = AnyDisposer | void | undefined | null
export type AsyncSetup =
  | (() => AsyncDisposer)
  | (() => Promise<Collected>)
  | (() => Iterable<Collected>)
  | (() => AsyncIterable<Collected>)
export type Setup = (() => Disposer | void) | AsyncSetup

const effectOf = new WeakMap<AnyDisposer, Effect>()

/** Where an effect stands: in its plugin's list, or in that of the effect it was nested into. */
export interface EffectOwner {
  readonly effects: Set<Effect>
  /** Runs disposers: they may ask for the plugin's end, and then are not made to wait for themselves. */
  within<T>(undo: () => T): T
}

/**
 * One reversible thing a plugin did.
 *
 * Set-up runs in the constructor. Disposers run last in, first out, each awaited before the next; an effect whose
 * set-up is still running is awaited first. As long as nothing is asynchronous, both happen at once.
 */
export class Effect implements EffectOwner {
  readonly label: string
  /** Effects whose exact disposers this one yielded; they end with it, at their place. */
  readonly effects = new Set<Effect>()
  readonly dispose: AnyDisposer
  readonly #steps: AnyDisposer[] = []
  #owner: EffectOwner
  #ready: Promise<void> | undefined
  #ended: { readonly result: void | Promise<void> } | undefined

  /** Throws what `setup` throws, after what it had collected is undone. */
  constructor(owner: EffectOwner, label: string, setup: Setup, report: (error: unknown) => void) {
    this.label = label
    this.#owner = owner
    this.dispose = () => this.#end()
    effectOf.set(this.dispose, this)
    owner.effects.add(this)
    try {
      this.#ready = this.#start(setup, report)
    } catch (error) {
      void this.#undo(report)
      throw error
    }
  }

  /** Resolves when set-up is over, whatever came of it. */
  get ready(): Promise<void> | undefined {
    return this.#ready
  }

  #start(setup: Setup, report: (error: unknown) => void): Promise<void> | undefined {
    const result: unknown = setup()
    if (result === undefined || result === null) return undefined
    if (typeof result === 'function') {
      this.#collect(result as AnyDisposer)
      return undefined
    }
    if (isIterable(result)) {
      for (const step of result) this.#collect(step)
      return undefined
    }
    const settle = isAsyncIterable(result) ? this.#drain(result) : this.#await(result as Promise<Collected>)
    return settle.catch((error: unknown) => {
      report(error)
      // Whoever is ending it waits for this very set-up, and then undoes what there is.
      return this.#ended === undefined ? this.#undo(report) : undefined
    })
  }

  async #await(result: Promise<Collected>): Promise<void> {
    this.#collect(await result)
  }

  async #drain(result: AsyncIterable<Collected>): Promise<void> {
    for await (const step of result) this.#collect(step)
  }

  #collect(step: Collected): void {
    if (typeof step !== 'function') return
    this.#steps.push(step)
    const nested = effectOf.get(step)
    if (nested === undefined) return
    nested.#owner.effects.delete(nested)
    nested.#owner = this
    this.effects.add(nested)
  }

  #undo(report: (error: unknown) => void): void | Promise<void> {
    this.#ready = undefined
    try {
      const result = this.#end()
      return result instanceof Promise ? result.catch(report) : undefined
    } catch (error) {
      report(error)
    }
  }

  within<T>(undo: () => T): T {
    return this.#owner.within(undo)
  }

  #end(): void | Promise<void> {
    if (this.#ended !== undefined) return this.#ended.result
    // It stands in the list until it is over: whoever ends the plugin meanwhile waits for it too.
    const leave = (): void => void this.#owner.effects.delete(this)
    const undo = (): void | Promise<void> => this.within(() => unwind(this.#steps, this.label))
    const ready = this.#ready
    if (ready !== undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#ended = { result: promise }
      resolve(ready.then(undo))
      promise.then(leave, leave)
      return promise
    }
    // Set before the steps run: a step that disposes its own effect must not start over.
    this.#ended = { result: undefined }
    try {
      const result = undo()
      this.#ended = { result }
      if (isPromise(result)) result.then(leave, leave)
      else leave()
      return result
    } catch (error) {
      leave()
      throw error
    }
  }
}

/**
 * Runs `steps` from the last to the first, all of them whatever fails; empties the list. Gives a promise only when a
 * step gave one. Throws or rejects with the joined errors.
 */
export function unwind(steps: AnyDisposer[], label: string): void | Promise<void> {
  const errors: unknown[] = []
  while (steps.length > 0) {
    const step = steps.pop()
    try {
      const result = step?.()
      if (isPromise(result)) return unwindLater(result, steps, errors, label)
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw joinErrors(errors, `disposing ${label} failed`)
}

async function unwindLater(
  first: Promise<void>,
  steps: AnyDisposer[],
  errors: unknown[],
  label: string,
): Promise<void> {
  await first.catch((error: unknown) => errors.push(error))
  while (steps.length > 0) {
    try {
      await steps.pop()?.()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw joinErrors(errors, `disposing ${label} failed`)
}

export function isPromise(value: unknown): value is Promise<never> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
  )
}

function isIterable(value: unknown): value is Iterable<Collected> {
  return typeof (value as { [Symbol.iterator]?: unknown })[Symbol.iterator] === 'function'
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<never> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { [Symbol.asyncIterator]?: unknown })[Symbol.asyncIterator] === 'function'
  )
}
