import { Effect } from './effect.ts'
import type { AsyncDisposer, AsyncSetup, Disposer, Setup } from './effect.ts'
import { EventBus } from './events.ts'
import type { ArgsOf, Carrier, EventName, EventNameOf, Listener, ListenOptions, ResultOf } from './events.ts'
import { Fiber } from './fiber.ts'
import type { FiberReport } from './fiber.ts'
import { toDefinition } from './plugin.ts'
import type { Definition, Inject, Plugin, SetupResult } from './plugin.ts'
import { Registry } from './registry.ts'
import { viewFor } from './service.ts'
import type { ServiceKey, Services } from './service.ts'

/** What all contexts of one tree share. */
interface Tree {
  readonly bus: EventBus
  readonly registry: Registry
}

interface Derivation {
  readonly scope?: object
  readonly realm?: { readonly key: string; readonly realm: symbol }
  readonly intercept?: { readonly key: string; readonly config: object }
}

interface View {
  readonly source: unknown
  readonly view: unknown
  /** The registry's version at which `source` was right. */
  version: number
}

export interface PluginOptions {
  /** Awaiting the plugin waits for its services instead of rejecting with what is missing. */
  readonly wait?: boolean
}

// Each service key is a getter, defined when the key is first named.
export interface Context extends Services {}

/**
 * A place in the tree of plugins, and the hand through which a plugin does everything: what it registers through its
 * context is undone with it.
 *
 * `new Context()` makes a root. Each plugin gets a context of its own; `extend`, `isolate` and `intercept` derive
 * further ones that belong to the same plugin.
 */
export class Context {
  readonly fiber: Fiber
  readonly parent: Context | undefined
  /** The tag that scoped registrations and dispatches go by; nearest wins. */
  readonly scope: object | undefined
  readonly #tree: Tree
  readonly #derivation: Derivation
  readonly #views = new Map<string, View>()

  constructor(parent?: Context, fiber?: Fiber, derivation: Derivation = {}) {
    this.parent = parent
    this.#derivation = derivation
    this.scope = derivation.scope ?? parent?.scope
    if (parent === undefined) {
      const bus = new EventBus((error, failed, where) => failed.report(error, where))
      this.#tree = { bus, registry: new Registry() }
      const root: Definition = {
        name: 'root',
        required: [],
        optional: [],
        schema: undefined,
        setup: () => {},
      }
      this.fiber = new Fiber(root, { parent: undefined, config: undefined, context: () => this })
      this.fiber.settle()
    } else {
      this.#tree = parent.#tree
      this.fiber = fiber ?? parent.fiber
    }
  }

  /** Used by fibers; not for plugins. */
  get registry(): Registry {
    return this.#tree.registry
  }

  /**
   * Mounts `plugin`; it is disposed with this context's own plugin. Awaiting the result waits until it is active, and
   * rejects with what its set-up threw or with the services it waits for.
   */
  plugin<In, Out>(
    plugin: Plugin<In, Out>,
    ...rest: undefined extends In
      ? [config?: In, options?: PluginOptions]
      : [config: In, options?: PluginOptions]
  ): Fiber
  plugin(plugin: Plugin<never, never>, config?: unknown, options: PluginOptions = {}): Fiber {
    const definition = toDefinition(plugin)
    this.fiber.assertActive(`mount plugin "${definition.name}"`)
    return Fiber.mount(
      definition,
      { parent: this.fiber, config, context: fiber => this.below(fiber) },
      options,
    )
  }

  /** Runs `callback` while all of `inject` is there: a plugin without a name. */
  inject(inject: Inject, callback: (ctx: Context) => SetupResult): Fiber {
    return this.plugin({ name: 'inject', inject, apply: callback }, undefined, { wait: true })
  }

  /** Does something that is undone with the plugin, or earlier by the disposer it gives. See `Effect`. */
  effect(setup: AsyncSetup, label?: string): AsyncDisposer
  effect(setup: () => Disposer | void, label?: string): Disposer
  effect(setup: Setup, label = 'effect'): Disposer | AsyncDisposer {
    this.fiber.assertActive(`make effect "${label}"`)
    const report = (error: unknown): void => this.fiber.report(error, label)
    return new Effect(this.fiber, label, setup, report).dispose as Disposer
  }

  /** Ends this context's plugin with everything it did. */
  dispose(): Promise<void> {
    return this.fiber.dispose()
  }

  /** What runs below this plugin, what each part waits for, did, and failed at. */
  inspect(): FiberReport {
    return this.fiber.inspect()
  }

  /** Offers `service` under `key` in this context's realm. Throws DUPLICATE_SERVICE where one is there. */
  provide<Key extends ServiceKey>(key: Key, service: Services[Key]): Disposer {
    defineGetter(key)
    return this.effect(
      () => this.registry.provide(key, this.realmOf(key), service, this.fiber),
      `provide ${key}`,
    )
  }

  /** The service, or undefined while nobody active provides it. */
  get<Key extends ServiceKey>(key: Key): Services[Key] | undefined {
    const { registry } = this
    const known = this.#views.get(key)
    if (known?.version === registry.version) return known.view as Services[Key]
    const source = registry.read(key, this.realmOf(key), this.fiber)
    const view = known?.source === source ? known?.view : viewFor(this, source)
    this.#views.set(key, { source, view, version: registry.version })
    return view as Services[Key] | undefined
  }

  /** The realm in which this context looks up `key`. */
  realmOf(key: string): symbol | undefined {
    const own = this.#derivation.realm
    return own?.key === key ? own.realm : this.parent?.realmOf(key)
  }

  /** The configs that `intercept` put on the way from the root to here, merged, nearest last. */
  intercepted(key: string): Readonly<Record<string, unknown>> {
    const outer = this.parent?.intercepted(key) ?? {}
    const own = this.#derivation.intercept
    return own?.key === key ? { ...outer, ...own.config } : outer
  }

  /** The same plugin's context, tagged with `scope`. */
  extend(options: { readonly scope?: object } = {}): Context {
    return new Context(this, this.fiber, options)
  }

  /** The context of another plugin mounted here. Used by those who mount; not for plugins. */
  below(fiber: Fiber): Context {
    return new Context(this, fiber)
  }

  /** A context in which `key` is looked up in a realm of its own, or in the one that `label` names. */
  isolate(key: string, label?: string): Context {
    const realm = label === undefined ? Symbol(key) : Symbol.for(`dsh.realm.${key}.${label}`)
    return new Context(this, this.fiber, { realm: { key, realm } })
  }

  /** A context below which the service `key` finds `config` through `intercepted`. */
  intercept(key: string, config: object): Context {
    return new Context(this, this.fiber, { intercept: { key, config } })
  }

  /** A timer that ends with the plugin; what the callback throws is reported, not fatal. */
  setTimeout(callback: () => unknown, ms: number): Disposer {
    const stop = this.effect(() => {
      const timer = setTimeout(() => {
        stop()
        this.#tree.bus.notify([{ callback, ctx: this, global: true }], 'timer', [])
      }, ms)
      return () => clearTimeout(timer)
    }, 'timeout')
    return stop
  }

  setInterval(callback: () => unknown, ms: number): Disposer {
    return this.effect(() => {
      const run = (): void => this.#tree.bus.notify([{ callback, ctx: this, global: true }], 'timer', [])
      const timer = setInterval(run, ms)
      return () => clearInterval(timer)
    }, 'interval')
  }

  on<Name extends EventName>(name: Name, listener: Listener<Name>, options: ListenOptions = {}): Disposer {
    return this.effect(() => this.#tree.bus.add(this, name, listener as never, options), `on ${name}`)
  }

  once<Name extends EventName>(name: Name, listener: Listener<Name>, options: ListenOptions = {}): Disposer {
    const heard = (...args: readonly unknown[]): unknown => {
      stop()
      return (listener as unknown as (...args: readonly unknown[]) => unknown)(...args)
    }
    const stop = this.on(name, heard as never, options)
    return stop
  }

  emit<Name extends EventNameOf<'emit'>>(name: Name, ...args: ArgsOf<Name>): void
  emit<Name extends EventNameOf<'emit'>>(carrier: Carrier, name: Name, ...args: ArgsOf<Name>): void
  emit(first: unknown, ...rest: unknown[]): void {
    const { carrier, name, args } = split(first, rest)
    this.#tree.bus.emit(name, args, carrier)
  }

  veto<Name extends EventNameOf<'veto'>>(name: Name, ...args: ArgsOf<Name>): void
  veto<Name extends EventNameOf<'veto'>>(carrier: Carrier, name: Name, ...args: ArgsOf<Name>): void
  veto(first: unknown, ...rest: unknown[]): void {
    const { carrier, name, args } = split(first, rest)
    this.#tree.bus.veto(name, args, carrier)
  }

  /** Gives how many listeners took part. */
  parallel<Name extends EventNameOf<'parallel'>>(name: Name, ...args: ArgsOf<Name>): Promise<number>
  parallel<Name extends EventNameOf<'parallel'>>(
    carrier: Carrier,
    name: Name,
    ...args: ArgsOf<Name>
  ): Promise<number>
  parallel(first: unknown, ...rest: unknown[]): Promise<number> {
    const { carrier, name, args } = split(first, rest)
    return this.#tree.bus.parallel(name, args, carrier)
  }

  serial<Name extends EventNameOf<'serial'>>(
    name: Name,
    ...args: ArgsOf<Name>
  ): Promise<ResultOf<Name> | undefined>
  serial<Name extends EventNameOf<'serial'>>(
    carrier: Carrier,
    name: Name,
    ...args: ArgsOf<Name>
  ): Promise<ResultOf<Name> | undefined>
  serial(first: unknown, ...rest: unknown[]): Promise<unknown> {
    const { carrier, name, args } = split(first, rest)
    return this.#tree.bus.serial(name, args, carrier)
  }

  bail<Name extends EventNameOf<'bail'>>(name: Name, ...args: ArgsOf<Name>): ResultOf<Name> | undefined
  bail<Name extends EventNameOf<'bail'>>(
    carrier: Carrier,
    name: Name,
    ...args: ArgsOf<Name>
  ): ResultOf<Name> | undefined
  bail(first: unknown, ...rest: unknown[]): unknown {
    const { carrier, name, args } = split(first, rest)
    return this.#tree.bus.bail(name, args, carrier)
  }

  /** The last argument is what the innermost `next()` runs. */
  waterfall<Name extends EventNameOf<'waterfall'>>(
    name: Name,
    ...args: [...ArgsOf<Name>, inner: () => ResultOf<Name>]
  ): ResultOf<Name>
  waterfall<Name extends EventNameOf<'waterfall'>>(
    carrier: Carrier,
    name: Name,
    ...args: [...ArgsOf<Name>, inner: () => ResultOf<Name>]
  ): ResultOf<Name>
  waterfall(first: unknown, ...rest: unknown[]): unknown {
    const { carrier, name, args } = split(first, rest)
    const inner = args.pop() as () => unknown
    return this.#tree.bus.waterfall(name, args, inner, carrier)
  }

  /**
   * For hot paths: checks `internal/dispatch` now, and gives a function that notifies exactly the listeners of this
   * moment. A throw of a check escapes from here.
   */
  prepareEmit<Name extends EventNameOf<'emit'>>(
    carrier: Carrier | undefined,
    name: Name,
    ...args: ArgsOf<Name>
  ): (() => void) | undefined {
    const entries = this.#tree.bus.resolve('emit', name, args, carrier)
    return entries.length === 0 ? undefined : () => this.#tree.bus.notify(entries, name, args)
  }

  /** Whether a dispatch of `name` would reach anybody now. */
  isHeard(name: EventName, carrier?: Carrier): boolean {
    return this.#tree.bus.isHeard(name, carrier)
  }
}

/** A leading carrier is told by its `admits`, so that a payload put first is an error and not a silent filter. */
function split(
  first: unknown,
  rest: unknown[],
): { carrier: Carrier | undefined; name: string; args: unknown[] } {
  if (typeof first === 'string') return { carrier: undefined, name: first, args: rest }
  const [name, ...args] = rest
  const isCarrier = typeof (first as Partial<Carrier> | undefined)?.admits === 'function'
  if (!isCarrier || typeof name !== 'string')
    throw new TypeError('a dispatch starts with the event name, or a carrier and then the name')
  return { carrier: first as Carrier, name, args }
}

/** Makes `ctx.<key>` readable on every context. It throws MISSING_SERVICE while nobody provides the key. */
export function defineGetter(key: string): void {
  if (Object.hasOwn(Context.prototype, key)) {
    if (getters.has(key)) return
    throw new TypeError(`"${key}" cannot be a service key: Context has a member of that name`)
  }
  getters.add(key)
  Object.defineProperty(Context.prototype, key, {
    configurable: true,
    get(this: Context): unknown {
      return this.get(key as ServiceKey) ?? this.registry.missing(key)
    },
  })
}

const getters = new Set<string>()
