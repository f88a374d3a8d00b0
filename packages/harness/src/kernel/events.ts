import { ClosingStream } from './closing-stream.ts'
import { isAsyncIterable, isPromise } from './effect.ts'
import { KernelError } from './errors.ts'
import type { Context } from './context.ts'
import type { Fiber } from './fiber.ts'

interface Signature<Mode extends string, Args extends readonly unknown[], Result> {
  readonly mode: Mode
  readonly args: Args
  readonly result: Result
}

/** Tells all listeners; what one throws or rejects with is reported and stops nobody. */
export type Emit<Args extends readonly unknown[]> = Signature<'emit', Args, unknown>
/** Tells all listeners in order; the first throw stops and escapes. */
export type Veto<Args extends readonly unknown[]> = Signature<'veto', Args, void>
/** Starts all listeners, waits for all, then throws their errors joined. */
export type Parallel<Args extends readonly unknown[]> = Signature<'parallel', Args, unknown>
/** Awaits one listener after another until one gives something other than null, undefined and false. */
export type Serial<Args extends readonly unknown[], Result = void> = Signature<'serial', Args, Result>
/** `Serial`, at once. */
export type Bail<Args extends readonly unknown[], Result = void> = Signature<'bail', Args, Result>
/** Wraps: each listener gets the arguments and `next`, which runs the rest of the chain. */
export type Waterfall<Args extends readonly unknown[], Result> = Signature<'waterfall', Args, Result>

type AnySignature = Signature<string, readonly unknown[], unknown>

/**
 * Every event, with its mode in the type of its value, so that a dispatch in another mode does not compile.
 * Plugins merge their own in.
 */
export interface Events {
  /** Before each dispatch of another event; a throw refuses it. */
  'internal/dispatch': Veto<
    [mode: string, name: string, args: readonly unknown[], carrier: Carrier | undefined]
  >
  /** Something failed where nobody could be told: in a listener, a disposer, a late set-up. */
  'internal/error': Emit<[error: unknown, fiber: Fiber, where: string]>
  /** A plugin changed its state. */
  'internal/fiber': Emit<[fiber: Fiber]>
  /** Before a plugin takes a new config; a throw refuses it. */
  'internal/update': Veto<[fiber: Fiber, config: unknown]>
}

export type EventName = keyof Events & string
export type EventNameOf<Mode extends string> = {
  [Name in EventName]: Events[Name] extends { readonly mode: Mode } ? Name : never
}[EventName]
export type ArgsOf<Name extends EventName> = Events[Name] extends AnySignature ? Events[Name]['args'] : never
export type ResultOf<Name extends EventName> = Events[Name] extends AnySignature
  ? Events[Name]['result']
  : never

type Returned<S extends AnySignature> = S['mode'] extends 'serial'
  ? S['result'] | void | null | false | Promise<S['result'] | void | null | false>
  : S['mode'] extends 'bail'
    ? S['result'] | void | null | false
    : S['mode'] extends 'waterfall'
      ? S['result']
      : S['mode'] extends 'veto'
        ? void
        : unknown

/** What `ctx.on(name, …)` takes. A waterfall listener has `next` behind the arguments. */
export type Listener<Name extends EventName> = Events[Name] extends infer S extends AnySignature
  ? (
      ...args: S['mode'] extends 'waterfall' ? [...S['args'], next: () => S['result']] : [...S['args']]
    ) => Returned<S>
  : never

/**
 * Limits a dispatch to some listeners. `scopeTarget` makes one; identity matters, since the listeners it admits are
 * kept by carrier.
 */
export interface Carrier {
  /** Raised when `admits` may answer otherwise than before. */
  readonly version: number
  /** `scope` is the tag of the listener's context, undefined where it has none. */
  admits(scope: object | undefined): boolean
}

export interface ListenOptions {
  /** Goes before those already there. */
  readonly prepend?: boolean
  /** Hears dispatches of every scope. */
  readonly global?: boolean
}

type Callback = (...args: never[]) => unknown

interface Entry {
  readonly callback: Callback
  readonly ctx: Context
  readonly global: boolean
}

class ListenerList {
  entries: readonly Entry[] = []
  readonly #admitted = new WeakMap<
    Carrier,
    { entries: readonly Entry[]; version: number; admitted: readonly Entry[] }
  >()

  admitted(carrier: Carrier | undefined): readonly Entry[] {
    if (carrier === undefined || this.entries.length === 0) return this.entries
    const known = this.#admitted.get(carrier)
    if (known !== undefined && known.entries === this.entries && known.version === carrier.version) {
      return known.admitted
    }
    const admitted = this.entries.filter(entry => entry.global || carrier.admits(entry.ctx.scope))
    this.#admitted.set(carrier, { entries: this.entries, version: carrier.version, admitted })
    return admitted
  }
}

const none: readonly Entry[] = []

/** The listeners of one context tree. Lists are copied on write, so a dispatch keeps the list it began with. */
export class EventBus {
  readonly #lists = new Map<string, ListenerList>()
  readonly #report: (error: unknown, fiber: Fiber, where: string) => void

  constructor(report: (error: unknown, fiber: Fiber, where: string) => void) {
    this.#report = report
  }

  /** Gives the function that takes the listener away. */
  add(ctx: Context, name: string, callback: Callback, options: ListenOptions): () => void {
    const list = this.#lists.get(name) ?? new ListenerList()
    this.#lists.set(name, list)
    const entry: Entry = { callback, ctx, global: options.global === true }
    list.entries = options.prepend === true ? [entry, ...list.entries] : [...list.entries, entry]
    return () => {
      list.entries = list.entries.filter(other => other !== entry)
    }
  }

  /** Checks `internal/dispatch`, then gives the listeners that `carrier` admits. */
  resolve(
    mode: string,
    name: string,
    args: readonly unknown[],
    carrier: Carrier | undefined,
  ): readonly Entry[] {
    const checks = this.#lists.get('internal/dispatch')?.entries ?? none
    if (checks.length > 0 && !name.startsWith('internal/')) {
      for (const check of checks) call(check, [mode, name, args, carrier])
    }
    return this.#lists.get(name)?.admitted(carrier) ?? none
  }

  isHeard(name: string, carrier: Carrier | undefined): boolean {
    return (this.#lists.get(name)?.admitted(carrier) ?? none).length > 0
  }

  /** Calls each of `entries`; failures are reported, rejections too. */
  notify(entries: readonly Entry[], name: string, args: readonly unknown[]): void {
    for (const entry of entries) {
      try {
        const result = call(entry, args)
        if (isPromise(result))
          result.then(undefined, (error: unknown) => this.#report(error, entry.ctx.fiber, name))
      } catch (error) {
        this.#report(error, entry.ctx.fiber, name)
      }
    }
  }

  emit(name: string, args: readonly unknown[], carrier?: Carrier): void {
    this.notify(this.resolve('emit', name, args, carrier), name, args)
  }

  veto(name: string, args: readonly unknown[], carrier?: Carrier): void {
    for (const entry of this.resolve('veto', name, args, carrier)) {
      const result = call(entry, args)
      if (isPromise(result))
        result.then(undefined, (error: unknown) => this.#report(error, entry.ctx.fiber, name))
    }
  }

  async parallel(name: string, args: readonly unknown[], carrier?: Carrier): Promise<number> {
    const entries = this.resolve('parallel', name, args, carrier)
    const results = await Promise.allSettled(entries.map(async entry => call(entry, args)))
    const errors = results
      .filter(result => result.status === 'rejected')
      .map(result => result.reason as unknown)
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} listener(s) of ${name} failed`)
    return entries.length
  }

  async serial(name: string, args: readonly unknown[], carrier?: Carrier): Promise<unknown> {
    for (const entry of this.resolve('serial', name, args, carrier)) {
      const result: unknown = await call(entry, args)
      if (isAnswer(result)) return result
    }
    return undefined
  }

  bail(name: string, args: readonly unknown[], carrier?: Carrier): unknown {
    for (const entry of this.resolve('bail', name, args, carrier)) {
      const result = call(entry, args)
      if (isAnswer(result)) return result
    }
    return undefined
  }

  waterfall(name: string, args: readonly unknown[], inner: () => unknown, carrier?: Carrier): unknown {
    const entries = this.resolve('waterfall', name, args, carrier)
    const run = (index: number): unknown => {
      const entry = entries[index]
      if (entry === undefined) return inner()
      return call(entry, [...args, reusableNext(name, () => run(index + 1))])
    }
    return run(0)
  }
}

function call(entry: Entry, args: readonly unknown[]): unknown {
  return (entry.callback as (...args: readonly unknown[]) => unknown)(...args)
}

function isAnswer(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false
}

/**
 * A `next` that may run again, over the whole rest of the chain, once its last run has settled: a value at once, a
 * promise when it settles, a stream when it ends, fails or is closed. Throws NEXT_OPEN before that.
 */
function reusableNext(name: string, run: () => unknown): () => unknown {
  let open = false
  const close = (): void => {
    open = false
  }
  return () => {
    if (open)
      throw new KernelError('NEXT_OPEN', `next() of ${name} was called while its last call was still running`)
    open = true
    try {
      const result = run()
      if (isPromise(result)) return settling(result, close)
      if (isAsyncIterable(result)) return new ClosingStream(result, close)
      open = false
      return result
    } catch (error) {
      open = false
      throw error
    }
  }
}

async function settling(result: Promise<unknown>, close: () => void): Promise<unknown> {
  try {
    return await result
  } finally {
    close()
  }
}
