import { isDeepStrictEqual } from 'node:util'
import type { Context } from '../context.ts'
import { Fiber } from '../fiber.ts'
import { toDefinition } from '../plugin.ts'
import type { Definition, Inject } from '../plugin.ts'
import { LoaderError } from './errors.ts'
import type { LoadedPlugin } from './modules.ts'
import type { Row } from './row.ts'
import { endsWithin } from '../time-limit.ts'

/** Modules by row, loaded before anything is changed; a row that is missing here could not be loaded. */
export type Plugins = ReadonlyMap<Row, LoadedPlugin>

interface Mounted {
  readonly row: Row
  readonly loaded: LoadedPlugin | undefined
  readonly ctx: Context
  readonly fiber: Fiber
  readonly group: Group | undefined
}

export interface GroupOptions {
  /** Turns a row's config into what the plugin gets. */
  read(config: unknown): unknown
  /** How long the end of a plugin is waited for. */
  readonly settleMs: number
}

/** The running side of a composition: brings the mounted plugins of one list to what its rows say. */
export class Group {
  readonly #ctx: Context
  readonly #options: GroupOptions
  #mounted = new Map<string, Mounted>()

  constructor(ctx: Context, options: GroupOptions) {
    this.#ctx = ctx
    this.#options = options
  }

  /**
   * Starts everything that has to change, in order; wait for the fibers to settle. Unchanged rows are not touched, and
   * plugins that ended by themselves stay off until their row changes.
   */
  async reconcile(rows: readonly Row[], plugins: Plugins): Promise<void> {
    const wanted = new Map(rows.filter(row => row.disabled !== true).map(row => [row.id, row]))
    for (const [id, mounted] of [...this.#mounted].reverse()) {
      const row = wanted.get(id)
      if (row === undefined || needsRemount(mounted.row, row)) await this.#unmount(id, mounted)
    }
    for (const row of wanted.values()) await this.#bring(row, plugins)
  }

  /** Mounts the plugin of each row in `plugins` anew, leaving the others alone. */
  async remount(plugins: Plugins): Promise<void> {
    // Remounting moves a row to the end of the map: walk over what was there.
    const before = [...this.#mounted]
    for (const [id, mounted] of before) {
      await mounted.group?.remount(plugins)
      const loaded = plugins.get(mounted.row)
      if (loaded === undefined) continue
      await this.#unmount(id, mounted)
      this.#mount(mounted.row, loaded)
    }
  }

  /** Every mounted row of this list and below. */
  *entries(): Iterable<{
    readonly row: Row
    readonly loaded: LoadedPlugin | undefined
    readonly fiber: Fiber
  }> {
    for (const mounted of this.#mounted.values()) {
      yield mounted
      if (mounted.group !== undefined) yield* mounted.group.entries()
    }
  }

  async #bring(row: Row, plugins: Plugins): Promise<void> {
    const mounted = this.#mounted.get(row.id)
    if (mounted === undefined) {
      const loaded = plugins.get(row)
      if (row.group === true || loaded !== undefined) this.#mount(row, loaded)
    } else {
      const changed = !isDeepStrictEqual(mounted.row.config, row.config)
      this.#mounted.set(row.id, { ...mounted, row })
      if (changed) mounted.fiber.update(this.#options.read(row.config)).catch(() => {})
    }
    await this.#mounted.get(row.id)?.group?.reconcile(row.rows ?? [], plugins)
  }

  #mount(row: Row, loaded: LoadedPlugin | undefined): void {
    const ctx = derive(this.#ctx, row)
    const definition =
      loaded === undefined ? groupDefinition(row) : withInject(toDefinition(loaded.plugin), row.inject)
    const place = {
      parent: ctx.fiber,
      config: loaded && this.#options.read(row.config),
      context: (fiber: Fiber) => ctx.below(fiber),
    }
    const fiber = Fiber.mount(definition, place, { wait: true })
    const group = loaded === undefined ? new Group(fiber.ctx, this.#options) : undefined
    this.#mounted.set(row.id, { row, loaded, ctx, fiber, group })
  }

  async #unmount(id: string, mounted: Mounted): Promise<void> {
    this.#mounted.delete(id)
    // What fails on the way is reported by the fiber; the row is gone all the same.
    const end = mounted.fiber.dispose().catch(() => {})
    const { settleMs } = this.#options
    if (await endsWithin(end, settleMs)) return
    const text = `plugin "${mounted.fiber.name}" did not end within ${settleMs} ms; the change went on without it`
    mounted.fiber.report(new LoaderError('SLOW_DISPOSAL', text), 'loader')
  }
}

function needsRemount(before: Row, after: Row): boolean {
  const parts = (row: Row): unknown => [row.name, row.base, row.group, row.inject, row.isolate, row.intercept]
  return !isDeepStrictEqual(parts(before), parts(after))
}

function derive(ctx: Context, row: Row): Context {
  let derived = ctx
  for (const [key, label] of Object.entries(row.isolate ?? {})) {
    derived = label === true ? derived.isolate(key) : derived.isolate(key, label)
  }
  for (const [key, config] of Object.entries(row.intercept ?? {})) derived = derived.intercept(key, config)
  return derived
}

function groupDefinition(row: Row): Definition {
  return withInject(
    { name: row.id, required: [], optional: [], schema: undefined, setup: () => {} },
    row.inject,
  )
}

function withInject(definition: Definition, inject: Inject | undefined): Definition {
  if (inject === undefined) return definition
  const more = toDefinition({ name: definition.name, inject, apply: () => {} })
  return {
    ...definition,
    required: [...new Set([...definition.required, ...more.required])],
    optional: [...new Set([...definition.optional, ...more.optional])],
  }
}
