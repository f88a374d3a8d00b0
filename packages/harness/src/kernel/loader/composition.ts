import { isDeepStrictEqual } from 'node:util'
import { pathToFileURL } from 'node:url'
import { readFile } from 'node:fs/promises'
import type { Context } from '../context.ts'
import { editComposition, readComposition } from './composition-file.ts'
import type { CompositionText } from './composition-file.ts'
import { LoaderError } from './errors.ts'
import { assertIncluded } from './fence.ts'
import type { Fence } from './fence.ts'
import type { Loader } from './loader.ts'
import { replaceFile } from '../replace-file.ts'
import type { RowPatch } from './row.ts'
import { FileWatcher } from './watcher.ts'

export interface CompositionOptions {
  /** The rows the program itself brings; files change and add to them. */
  readonly base: readonly RowPatch[]
  /** Composition files, weakest first. One that does not exist is an empty layer at the start. */
  readonly files: readonly string[]
  /** Told of every layer or change that could not be used. */
  readonly report: (error: unknown) => void
  /** Holds files of a folder that brings plugins of its own to what a person admitted. */
  readonly fence?: Fence | undefined
}

/**
 * Keeps a running composition equal to its files, whoever changes them.
 *
 * All work is one queue: a change through `update` and the watcher's notice of that same change cannot cross. What a
 * file says wrongly is reported and changes nothing; at the start the layer is left out.
 */
export class Composition {
  readonly #ctx: Context
  readonly #loader: Loader
  readonly #options: CompositionOptions
  readonly #layers = new Map<string, CompositionText>()
  #queue: Promise<unknown> = Promise.resolve()
  #refreshes = 0

  constructor(ctx: Context, loader: Loader, options: CompositionOptions) {
    this.#ctx = ctx
    this.#loader = loader
    this.#options = options
  }

  /** Reads the files and starts the plugins. */
  start(): Promise<void> {
    return this.#serially(async () => {
      for (const file of this.#options.files) await this.#readAtStart(file)
      await this.#loader.apply(this.#all(this.#layers))
    })
  }

  /** Follows the files and the plugins' modules until the plugin of the context ends. */
  watch(): void {
    const watcher = new FileWatcher(this.#ctx, changed => this.#changed(changed))
    const follow = (): void => watcher.follow([...this.#configFiles(), ...this.#loader.modules.paths()])
    follow()
    this.#afterChange = follow
  }

  #afterChange: () => void = () => {}

  /** Reads the files again. Of several calls that wait, one does the work. */
  async refresh(): Promise<void> {
    const turn = ++this.#refreshes
    await this.#serially(async () => {
      if (turn === this.#refreshes) await this.#refresh()
    })
  }

  /** Merges `config` into a row, or switches it, and writes that into `file` once the plugins run with it. */
  update(
    file: string,
    id: string,
    change: { readonly config?: Readonly<Record<string, unknown>>; readonly disabled?: boolean },
  ): Promise<void> {
    return this.#serially(async () => {
      const before = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return ''
        throw error
      })
      const text = editComposition(before, file, id, change)
      const layers = new Map(this.#layers)
      layers.set(file, await readComposition(file, text))
      await this.#loader.apply(this.#all(layers))
      try {
        await replaceFile(file, text)
      } catch (error) {
        await this.#loader.apply(this.#all(this.#layers))
        throw error
      }
      this.#keep(layers)
    })
  }

  async #readAtStart(file: string): Promise<void> {
    try {
      this.#layers.set(file, await this.#read(file))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#options.report(error)
    }
  }

  async #read(file: string): Promise<CompositionText> {
    const { fence } = this.#options
    const layer = await readComposition(file)
    if (fence !== undefined) assertIncluded(file, layer.texts.keys(), fence)
    return layer
  }

  async #refresh(): Promise<void> {
    const layers = new Map<string, CompositionText>()
    for (const file of this.#options.files) {
      const layer = await this.#readAgain(file)
      if (layer !== undefined) layers.set(file, layer)
    }
    const rows = (of: ReadonlyMap<string, CompositionText>): unknown =>
      [...of.values()].map(layer => layer.rows)
    const isSame = isDeepStrictEqual(rows(layers), rows(this.#layers))
    // What could not be loaded may have been installed by now.
    if (!isSame || !this.#loader.isWhole) await this.#loader.apply(this.#all(layers))
    this.#keep(layers)
  }

  /** A running file that is gone or empty is more likely half saved than meant. */
  async #readAgain(file: string): Promise<CompositionText | undefined> {
    const known = this.#layers.get(file)
    try {
      const layer = await this.#read(file)
      if (known === undefined || known.rows.length === 0 || !layer.isBlank) return layer
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      if (known === undefined) return undefined
    }
    throw new LoaderError(
      'INVALID_COMPOSITION',
      `${file} is gone or empty; plugins run as before. Write [] to mean an empty list`,
    )
  }

  async #changed(files: readonly string[]): Promise<void> {
    const configs = this.#configFiles()
    const modules = files.filter(file => !configs.has(file)).map(file => pathToFileURL(file).href)
    try {
      if (modules.length > 0) await this.#serially(() => this.#loader.reload(modules))
      if (files.some(file => configs.has(file))) await this.refresh()
    } catch (error) {
      this.#options.report(error)
    }
    this.#afterChange()
  }

  #configFiles(): Set<string> {
    const included = [...this.#layers.values()].flatMap(layer => [...layer.texts.keys()])
    return new Set([...this.#options.files, ...included])
  }

  #all(layers: ReadonlyMap<string, CompositionText>): (readonly RowPatch[])[] {
    const files = this.#options.files.flatMap(file => layers.get(file) ?? [])
    return [this.#options.base, ...files.map(layer => layer.rows)]
  }

  #keep(layers: ReadonlyMap<string, CompositionText>): void {
    this.#layers.clear()
    for (const [file, layer] of layers) this.#layers.set(file, layer)
    this.#afterChange()
  }

  async #serially<T>(work: () => Promise<T>): Promise<T> {
    this.#loader.assertMayWait()
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }
}
