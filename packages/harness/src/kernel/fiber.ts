import type { Context, PluginOptions } from './context.ts'
import { kernelCopies, newsOfCopies } from './copies.ts'
import { Effect, isPromise, unwind } from './effect.ts'
import type { EffectOwner } from './effect.ts'
import { joinErrors, KernelError, messageOf } from './errors.ts'
import { resolveConfig, resolveConfigNow } from './plugin.ts'
import type { Definition } from './plugin.ts'
import type { Registry } from './registry.ts'
import { isInside, openRun, runIn, runWithin } from './run.ts'

export type FiberState = 'pending' | 'loading' | 'active' | 'failed' | 'unloading' | 'disposed'

/** What `inspect` tells of one plugin. */
export interface FiberReport {
  /** Unique in its tree of contexts. */
  readonly id: number
  readonly name: string
  readonly state: FiberState
  /** Required services that are not there. */
  readonly waitsFor: readonly string[]
  readonly provides: readonly string[]
  readonly effects: readonly string[]
  /** The last errors, oldest first. */
  readonly errors: readonly { readonly where: string; readonly message: string }[]
  readonly children: readonly FiberReport[]
}

/** Where a plugin is mounted, and with what. */
export interface FiberPlace {
  readonly parent: Fiber | undefined
  readonly config: unknown
  context(fiber: Fiber): Context
}

const keptErrors = 20

/**
 * The life of one mounted plugin: pending → loading → active, and back through unloading when a service it stands on
 * changes, its config changes, or it is disposed.
 *
 * `settle` is the only thing that moves it: it takes one step after another towards what is wanted now, so that wishes
 * which arrive in the middle of a step are served after it, the last one last. Nothing is asynchronous unless the
 * plugin is.
 */
export class Fiber implements EffectOwner, PromiseLike<void> {
  readonly name: string
  readonly id: number
  readonly parent: Fiber | undefined
  readonly ctx: Context
  readonly effects = new Set<Effect>()
  readonly children = new Set<Fiber>()
  readonly #definition: Definition
  readonly #waits: boolean
  readonly #failures: { where: string; error: unknown }[] = []
  readonly #disposal: unknown[] = []
  readonly #ended = Promise.withResolvers<void>()
  #state: FiberState = 'pending'
  #config: unknown
  #wanted = 0
  #loaded = -1
  #owners = new Map<string, Fiber | undefined>()
  #disposing = false
  #busy = false
  #waiters = 0
  #change = Promise.withResolvers<void>()
  #mounted: Effect | undefined

  /** `place` makes the plugin's own context, which the fiber's parts are reached through. */
  constructor(definition: Definition, place: FiberPlace, options: PluginOptions = {}) {
    this.parent = place.parent
    this.name = definition.name
    this.ctx = place.context(this)
    this.id = this.#registry.nextFiberId()
    this.#definition = definition
    this.#config = place.config
    this.#waits = options.wait === true
    this.#ended.promise.catch(() => {})
  }

  static mount(
    definition: Definition,
    place: FiberPlace & { readonly parent: Fiber },
    options: PluginOptions,
  ): Fiber {
    const fiber = new Fiber(definition, place, options)
    const { parent } = place
    parent.children.add(fiber)
    fiber.#registry.watch(fiber, fiber.#keys)
    fiber.#mounted = new Effect(
      parent,
      `plugin ${definition.name}`,
      () => () => fiber.#shutDown(),
      () => {},
    )
    fiber.#tellCopies()
    fiber.settle()
    return fiber
  }

  /** A second copy comes with a plugin's module, so it is looked for where plugins are mounted. */
  #tellCopies(): void {
    const registry = this.#registry
    const news = newsOfCopies(registry.copiesTold)
    if (news === undefined) return
    registry.copiesTold = kernelCopies().length
    this.#root.report(news, 'copies')
  }

  get #root(): Fiber {
    return this.parent === undefined ? this : this.parent.#root
  }

  get state(): FiberState {
    return this.#state
  }

  get config(): unknown {
    return this.#config
  }

  /** What set-up threw last, while the state is `failed`. */
  get error(): unknown {
    return this.#state === 'failed' ? this.#failures.at(-1)?.error : undefined
  }

  get #registry(): Registry {
    return this.ctx.registry
  }

  get #keys(): readonly string[] {
    return [...this.#definition.required, ...this.#definition.optional]
  }

  /** Waits until the plugin is active; rejects with its error, or with MISSING_SERVICE. See `ctx.plugin`. */
  // oxlint-disable-next-line unicorn/no-thenable -- `await ctx.plugin(x)` is the contract
  then<A = void, B = never>(
    onActive?: ((value: void) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#activation().then(onActive, onError)
  }

  /** Takes the new config and reloads; of several updates the last one wins. Resolves once it is applied. */
  update(config: unknown): Promise<void> {
    this.ctx.veto('internal/update', this, config)
    this.#config = config
    return this.restart()
  }

  restart(): Promise<void> {
    this.#wanted++
    this.settle()
    return isInside(this) ? Promise.resolve() : this.#activation()
  }

  /**
   * Resolves after everything the plugin did is undone, in reverse; rejects with what failed on the way. All callers
   * share one end; only code that runs inside the plugin's own set-up or disposal is not made to wait for itself.
   */
  dispose(): Promise<void> {
    this.#disposing = true
    this.settle()
    return isInside(this) ? Promise.resolve() : this.#ended.promise
  }

  isWithin(other: Fiber): boolean {
    return this === other || (this.parent?.isWithin(other) ?? false)
  }

  /** Whether the running plugin was loaded on a service of `owner`. */
  standsOn(owner: Fiber): boolean {
    const runs = this.#state === 'active' || this.#state === 'loading'
    return runs && [...this.#owners.values()].includes(owner)
  }

  /** Whether the plugin, or one around it, was last loaded with a service of `owner`. */
  wasLoadedOn(owner: Fiber): boolean {
    return [...this.#owners.values()].includes(owner) || (this.parent?.wasLoadedOn(owner) ?? false)
  }

  /** Throws INACTIVE_EFFECT unless the plugin is loading or active. */
  assertActive(what: string): void {
    if (this.#state === 'active' || this.#state === 'loading') return
    throw new KernelError('INACTIVE_EFFECT', `cannot ${what}: plugin "${this.name}" is ${this.#state}`)
  }

  /** Keeps an error for `inspect` and tells `internal/error`. */
  report(error: unknown, where: string): void {
    this.#failures.push({ where, error })
    if (this.#failures.length > keptErrors) this.#failures.shift()
    if (where !== 'internal/error') this.ctx.emit('internal/error', error, this, where)
  }

  inspect(): FiberReport {
    return {
      id: this.id,
      name: this.name,
      state: this.#state,
      waitsFor: this.#state === 'pending' ? this.#missing() : [],
      provides: this.#registry.keysOf(this),
      effects: [...this.effects].map(effect => effect.label),
      errors: this.#failures.map(({ where, error }) => ({ where, message: messageOf(error) })),
      children: [...this.children].map(child => child.inspect()),
    }
  }

  settle(): void {
    if (this.#busy) return
    for (let step = this.#nextStep(); step !== undefined; step = this.#nextStep()) {
      this.#busy = true
      this.#registry.busy.add(this)
      const result = step()
      if (isPromise(result)) {
        // In one go, so that whoever waits for quiet sees the next step already begun.
        void result.then(() => {
          this.#stepDone()
          this.settle()
        })
        return
      }
      this.#stepDone()
    }
  }

  #stepDone(): void {
    this.#busy = false
    this.#registry.busy.delete(this)
    const { resolve } = this.#change
    this.#change = Promise.withResolvers()
    resolve()
  }

  #nextStep(): (() => void | Promise<void>) | undefined {
    switch (this.#state) {
      case 'active':
      case 'failed':
        return this.#disposing || !this.#isCurrent() ? () => this.#unload() : undefined
      case 'pending':
        if (this.#disposing) return () => this.#finish()
        return this.#missing().length === 0 ? () => this.#load() : undefined
      default:
        return undefined
    }
  }

  #isCurrent(): boolean {
    return (
      this.#loaded === this.#wanted && this.#keys.every(key => this.#ownerOf(key) === this.#owners.get(key))
    )
  }

  #ownerOf(key: string): Fiber | undefined {
    return this.#registry.ownerOf(key, this.ctx.realmOf(key))
  }

  #missing(): string[] {
    return this.#definition.required.filter(key => this.#ownerOf(key) === undefined)
  }

  #enter(state: FiberState): void {
    this.#state = state
    this.#registry.version++
    this.ctx.emit('internal/fiber', this)
  }

  #load(): void | Promise<void> {
    this.#loaded = this.#wanted
    this.#owners = new Map(this.#keys.map(key => [key, this.#ownerOf(key)]))
    this.#enter('loading')
    const setUp = (config: unknown): unknown => this.#definition.setup(this.ctx, config)
    const fail = (error: unknown): void | Promise<void> => this.#fail(error)
    const run = openRun(this)
    try {
      const config = resolveConfigNow(this.#definition, this.#config)
      const result = runIn(run, () =>
        config === undefined
          ? resolveConfig(this.#definition, this.#config).then(setUp)
          : setUp(config.value),
      )
      if (isPromise(result)) {
        return result.then(undo => this.#activate(undo), fail).finally(() => void (run.open = false))
      }
      this.#activate(result)
    } catch (error) {
      return fail(error)
    } finally {
      if (this.#state !== 'loading') run.open = false
    }
  }

  #activate(undo: unknown): void {
    if (typeof undo === 'function') this.ctx.effect(() => undo as () => void, 'set-up')
    this.#enter('active')
    for (const key of this.#registry.keysOf(this)) this.#registry.announce(key)
  }

  #fail(error: unknown): void | Promise<void> {
    const done = (): void => {
      if (this.#waiters === 0 && !this.#disposing) this.report(error, 'set-up')
      else this.#failures.push({ where: 'set-up', error })
      this.#enter('failed')
    }
    // What the set-up left running may add nothing any more: it would outlive the roll-back.
    this.#enter('unloading')
    const result = this.#undoAll()
    return result === undefined ? done() : result.then(done)
  }

  #unload(): void | Promise<void> {
    this.#enter('unloading')
    const done = (): void => this.#enter('pending')
    const undo = (): void | Promise<void> => {
      const result = this.#undoAll()
      return result === undefined ? done() : result.then(done)
    }
    const dependents = this.#registry.dependentsOf(this).filter(fiber => !this.isWithin(fiber))
    for (const fiber of dependents) fiber.settle()
    const waiting = dependents.filter(fiber => fiber.#busy)
    return waiting.length === 0 ? undo() : Promise.all(waiting.map(fiber => fiber.settled())).then(undo)
  }

  /** Disposes all effects, last first; never throws: what fails is reported and kept for `dispose`. */
  #undoAll(): void | Promise<void> {
    const keep = (error: unknown): void => {
      this.#disposal.push(error)
      this.report(error, 'disposal')
    }
    const steps = [...this.effects].map(effect => () => {
      try {
        const result = effect.dispose()
        return isPromise(result) ? result.catch(keep) : undefined
      } catch (error) {
        keep(error)
      }
    })
    return this.within(() => unwind(steps, this.name))
  }

  within<T>(undo: () => T): T {
    return runWithin(this, undo)
  }

  #finish(): void {
    this.#registry.unwatch(this, this.#keys)
    this.parent?.children.delete(this)
    this.#enter('disposed')
    void this.#mounted?.dispose()
    if (this.#disposal.length === 0) this.#ended.resolve()
    else this.#ended.reject(joinErrors(this.#disposal, `disposing plugin "${this.name}" failed`))
  }

  /** The undo step of the mount: at once where everything below is synchronous. */
  #shutDown(): void | Promise<void> {
    if (this.#state === 'disposed') return
    const end = this.dispose()
    if ((this.#state as FiberState) !== 'disposed') return end
    if (this.#disposal.length > 0) throw joinErrors(this.#disposal, `disposing plugin "${this.name}" failed`)
  }

  /** Resolves when no step is running; the plugin may still wait for services. */
  async settled(): Promise<void> {
    while (this.#busy) await this.#change.promise
  }

  async #activation(): Promise<void> {
    this.#waiters++
    try {
      for (;;) {
        await this.settled()
        if (this.#state === 'failed') throw this.error
        if (this.#state === 'active' || this.#state === 'disposed') return
        if (this.#waits) {
          await this.#change.promise
          continue
        }
        // Another plugin that is just loading may still provide what is missing.
        const loading = [...this.#registry.busy].find(fiber => !this.isWithin(fiber))
        if (loading === undefined) throw this.#missingError()
        await loading.settled()
      }
    } finally {
      this.#waiters--
    }
  }

  #missingError(): KernelError {
    const [first = '', ...more] = this.#missing()
    const list = [first, ...more].map(key => `"${key}"`).join(', ')
    return new KernelError(
      'MISSING_SERVICE',
      `plugin "${this.name}" waits for ${list}${this.#registry.hint(first)}`,
    )
  }
}
