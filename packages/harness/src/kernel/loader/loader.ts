import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context } from '../context.ts'
import { messageOf } from '../errors.ts'
import type { Fiber, FiberReport, FiberState } from '../fiber.ts'
import { currentFiber } from '../run.ts'
import { filesOnStack } from './blame.ts'
import { compose } from './compose.ts'
import { LoaderError } from './errors.ts'
import { interpolate } from './interpolate.ts'
import { isInstalled, Modules } from './modules.ts'
import type { LoadedPlugin, ModulesOptions } from './modules.ts'
import type { Row, RowPatch } from './row.ts'
import { endsWithin } from '../time-limit.ts'
import { Group } from './tree.ts'
import type { Plugins } from './tree.ts'

export interface LoaderOptions extends ModulesOptions {
  /** What `${env:NAME}` may read. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Called at once when a change is asked for; a throw refuses it. */
  readonly guard?: () => void
  /**
   * Awaited before a running composition is changed; what it gives is called when the change is over. A host waits here
   * until no turn runs, and lets none begin.
   */
  readonly drain?: () => Promise<void | (() => void)>
  /** How long a change waits for set-ups and disposals, 10 000 by default; slower ones go on behind it. */
  readonly settleMs?: number
}

/** What became of one row. */
export interface RowReport {
  readonly id: string
  readonly name: string
  readonly state: FiberState | 'disabled' | 'unloaded'
  /** Why it does not run, where that is known. */
  readonly reason?: string
  /** What a person should know though it runs. */
  readonly note?: string
}

declare module '../index.ts' {
  interface Services {
    /** Who runs the composition, where there is one. */
    loader: Loader
  }
}

const changes = new AsyncLocalStorage<{ open: boolean }>()

/**
 * Runs a composition and changes it while it runs.
 *
 * Changes are serial, and each is whole: modules are loaded first, and when a plugin fails under the new rows the old
 * ones are put back. Only at the start a bad row degrades alone, since there is nothing to go back to.
 */
export class Loader {
  readonly modules: Modules
  readonly #options: LoaderOptions
  readonly #root: Group
  readonly #ctx: Context
  readonly #failures = new Map<string, string>()
  /** Notes on rows whose files on disk are not what runs. */
  readonly #outdated = new Map<string, string>()
  #rows: readonly Row[] = []
  #plugins = new Map<Row, LoadedPlugin>()
  #queue: Promise<unknown> = Promise.resolve()
  #started = false

  /** Ends with the plugin of `ctx`. */
  constructor(ctx: Context, options: LoaderOptions = {}) {
    this.#ctx = ctx
    this.#options = options
    this.modules = new Modules(options)
    this.#root = new Group(ctx, {
      read: config => interpolate(config, options.env ?? {}),
      settleMs: this.#settleMs,
    })
    ctx.effect(() => () => this.modules.dispose(), 'loader')
  }

  /**
   * Brings the running plugins to what the layers say together; the last of several calls wins in the end.
   * Throws INVALID_ROW for layers that do not fit together, CHANGE_REFUSED for a change that was undone.
   */
  apply(layers: readonly (readonly RowPatch[])[]): Promise<void> {
    return this.#change(() => this.#apply(compose(layers)))
  }

  /** Loads changed files again, with the plugins that import them. Gives the ids of those plugins. */
  reload(urls: readonly string[]): Promise<readonly string[]> {
    return this.#change(() => this.#reload(urls))
  }

  /** One report a row, in order; groups are walked through. */
  report(): RowReport[] {
    const running = new Map([...this.#root.entries()].map(entry => [entry.row.id, entry.fiber]))
    return flatten(this.#rows).map(row => {
      const fiber = running.get(row.id)
      const { id, name } = row
      if (row.disabled === true) return { id, name, state: 'disabled' }
      if (fiber === undefined)
        return { id, name, state: 'unloaded', reason: this.#failures.get(id) ?? 'its group is off' }
      const note = this.#outdated.get(id)
      return { id, name, state: fiber.state, ...reasonOf(fiber), ...(note !== undefined && { note }) }
    })
  }

  /** What the plugin of a row waits for, did and failed at; undefined while it has none. */
  inspect(id: string): FiberReport | undefined {
    return [...this.#root.entries()].find(entry => entry.row.id === id)?.fiber.inspect()
  }

  /**
   * Tells `internal/error` of something that nobody caught, in the name of the plugin it belongs to: by the files on its
   * stack, else by whose set-up began the running code. For a host's handlers of uncaught errors; false = it is no
   * plugin's, and the host must decide.
   */
  reportUncaught(error: unknown): boolean {
    const { modules } = this
    for (const file of filesOnStack(error)) {
      const users = modules.dependentsOf(file)
      const owner = [...this.#root.entries()].find(({ loaded }) => users.has(loaded?.url ?? ''))
      const name = [...users].map(url => modules.nameOf(url)).find(each => each !== undefined)
      if (owner === undefined && name === undefined) continue
      if (owner !== undefined) owner.fiber.report(error, 'uncaught')
      else this.#ctx.fiber.report(error, `uncaught in "${name}", which has ended`)
      return true
    }
    const current = currentFiber()
    if (current?.parent === undefined) return false
    current.report(error, 'uncaught')
    return true
  }

  /** Whether every row that is switched on has its plugin. */
  get isWhole(): boolean {
    return this.#failures.size === 0
  }

  /**
   * Throws NESTED_CHANGE, or what the host's guard throws, in code that must not wait for a change of plugins. Asked when
   * a change is asked for, not when its turn comes: it may stand in line behind what waits for the caller.
   */
  assertMayWait(): void {
    if (changes.getStore()?.open === true)
      throw new LoaderError(
        'NESTED_CHANGE',
        'a plugin cannot wait for a change of plugins while it is set up',
      )
    this.#options.guard?.()
  }

  get #settleMs(): number {
    return this.#options.settleMs ?? 10_000
  }

  #change<T>(work: () => Promise<T>): Promise<T> {
    try {
      this.assertMayWait()
    } catch (error) {
      return Promise.reject(error as Error)
    }
    const mark = { open: true }
    const run = async (): Promise<T> => {
      const release = this.#started ? await this.#options.drain?.() : undefined
      return changes.run(mark, work).finally(() => {
        mark.open = false
        release?.()
      })
    }
    const result = this.#queue.then(run)
    this.#queue = result.catch(() => {})
    return result
  }

  async #apply(rows: readonly Row[]): Promise<void> {
    const before = { rows: this.#rows, plugins: this.#plugins }
    const { plugins, failures } = await this.#load(rows)
    const fresh = [...failures].filter(([id]) => !this.#failures.has(id))
    if (this.#started && fresh.length > 0) throw refused(fresh.map(([, reason]) => reason))
    const failed = this.#failed()
    try {
      await this.#reconcile(rows, plugins)
      if (this.#started) throwIfBroken(this.#failed(), failed)
    } catch (error) {
      await this.#reconcile(before.rows, before.plugins)
      throw error
    }
    this.#failures.clear()
    for (const [id, reason] of failures) this.#failures.set(id, reason)
    this.#started = true
  }

  async #reconcile(rows: readonly Row[], plugins: Map<Row, LoadedPlugin>): Promise<void> {
    this.#rows = rows
    this.#plugins = plugins
    await this.#root.reconcile(rows, plugins)
    await this.#quiet()
  }

  /** Loads what the rows need; modules of rows that name the same plugin as before are kept. */
  async #load(
    rows: readonly Row[],
  ): Promise<{ plugins: Map<Row, LoadedPlugin>; failures: Map<string, string> }> {
    const kept = new Map([...this.#plugins].map(([row, loaded]) => [`${row.base ?? ''} ${row.name}`, loaded]))
    const plugins = new Map<Row, LoadedPlugin>()
    const failures = new Map<string, string>()
    const load = async (row: Row): Promise<void> => {
      if (row.problem !== undefined) return void failures.set(row.id, row.problem)
      try {
        interpolate(row.config, this.#options.env ?? {})
        plugins.set(
          row,
          kept.get(`${row.base ?? ''} ${row.name}`) ?? (await this.modules.load(row.name, row.base)),
        )
      } catch (error) {
        failures.set(row.id, messageOf(error))
      }
    }
    await Promise.all(
      flatten(rows)
        .filter(row => row.group !== true && row.disabled !== true)
        .map(load),
    )
    return { plugins, failures }
  }

  async #reload(urls: readonly string[]): Promise<readonly string[]> {
    const stale = new Set(urls.flatMap(url => [...this.modules.dependentsOf(url)]))
    const affected = [...this.#root.entries()].filter(
      ({ loaded }) => loaded?.url !== undefined && stale.has(loaded.url),
    )
    const { installed = [], own: entries = [] } = Object.groupBy(affected, ({ loaded }) =>
      isInstalled(loaded?.url ?? '') ? 'installed' : 'own',
    )
    for (const { row } of installed) this.#tellOutdated(row)
    // An installed package that could not be loaded may be whole now; one that runs is not loaded twice.
    this.modules.renew([...stale].filter(url => installed.length === 0 || !isInstalled(url)))
    if (entries.length > 0) await this.#replace(entries)
    // A module that could not be loaded before may be whole now.
    if (this.#failures.size > 0 && stale.size > 0) await this.#apply(this.#rows)
    return entries.map(({ row }) => row.id)
  }

  #tellOutdated({ id, name }: Row): void {
    if (this.#outdated.has(id)) return
    this.#outdated.set(id, 'its files were changed; restart needed')
    const text = `the files of plugin "${name}" were changed; it runs as before until a restart`
    this.#ctx.fiber.report(new LoaderError('RESTART_NEEDED', text), 'loader')
  }

  async #replace(
    entries: readonly { readonly row: Row; readonly loaded: LoadedPlugin | undefined }[],
  ): Promise<void> {
    const renewed: Map<Row, LoadedPlugin> = new Map()
    for (const { row } of entries) renewed.set(row, await this.modules.load(row.name, row.base))
    const old: Plugins = new Map(
      entries.flatMap(({ row, loaded }) => (loaded === undefined ? [] : [[row, loaded] as const])),
    )
    const failed = this.#failed()
    await this.#root.remount(renewed)
    await this.#quiet()
    try {
      throwIfBroken(this.#failed(), failed)
    } catch (error) {
      await this.#root.remount(old)
      await this.#quiet()
      throw error
    }
    for (const [row, loaded] of renewed) this.#plugins.set(row, loaded)
  }

  /** What is down now, by row id. */
  #failed(): Map<string, string> {
    const failed = [...this.#root.entries()].filter(({ fiber }) => fiber.state === 'failed')
    return new Map(failed.map(({ row, fiber }) => [row.id, messageOf(fiber.error)]))
  }

  async #quiet(): Promise<void> {
    const { registry } = this.#ctx
    // One that settles may set others going that had settled before.
    const settled = async (): Promise<void> => {
      for (;;) {
        const busy = [...this.#root.entries()].filter(({ fiber }) => registry.busy.has(fiber))
        if (busy.length === 0) return
        await Promise.all(busy.map(({ fiber }) => fiber.settled()))
      }
    }
    await endsWithin(settled(), this.#settleMs)
  }
}

function reasonOf(fiber: Fiber): { readonly reason?: string } {
  const { state, waitsFor, errors } = fiber.inspect()
  if (state === 'active') return {}
  if (state === 'loading') return { reason: 'its set-up has not ended' }
  const reason = waitsFor.length > 0 ? `waits for "${waitsFor.join('", "')}"` : errors.at(-1)?.message
  return reason === undefined ? {} : { reason }
}

function throwIfBroken(now: ReadonlyMap<string, string>, before: ReadonlyMap<string, string>): void {
  const broken = [...now].filter(([id]) => !before.has(id)).map(([id, reason]) => `"${id}": ${reason}`)
  if (broken.length > 0) throw refused(broken)
}

function refused(reasons: readonly string[]): LoaderError {
  return new LoaderError(
    'CHANGE_REFUSED',
    `the change was undone, plugins run as before: ${reasons.join('; ')}`,
  )
}

function flatten(rows: readonly Row[]): Row[] {
  return rows.flatMap(row => [row, ...flatten(row.rows ?? [])])
}
