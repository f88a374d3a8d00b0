import { readFileSync } from 'node:fs'
import { findPackageJSON, registerHooks } from 'node:module'
import type { ResolveFnOutput, ResolveHookContext } from 'node:module'
import { fileURLToPath } from 'node:url'
import { messageOf } from '../errors.ts'
import { LoaderError } from './errors.ts'
import { assertAdmitted } from './fence.ts'
import type { Fence } from './fence.ts'
import { pluginOf } from './plugin-of.ts'
import { endsWithin } from '../time-limit.ts'
import { isInRange } from './version-range.ts'

export interface LoadedPlugin {
  readonly plugin: object
  /** The file it came from; absent for built-in plugins. */
  readonly url?: string
}

export interface ModulesOptions {
  /** Gives a plugin that needs no file, or undefined. */
  readonly builtin?: ((name: string) => object | Promise<object> | undefined) | undefined
  /** How long a module may take to load. */
  readonly timeoutMs?: number
  /** What the host brings, by package name: a plugin whose package asks for another version of it is not loaded. */
  readonly versions?: Readonly<Record<string, string>>
  /** Holds a folder that brings plugins of its own to the files of them that a person admitted. */
  readonly fence?: Fence | undefined
}

const request = 'dsh-plugin:'

/**
 * Loads plugin modules and knows who imports whom, so that a changed file can be loaded again.
 *
 * Node keeps every module it has loaded; a new version is a new URL, and the old one stays in memory. That is fine for
 * development and the reason why nothing reloads by itself. What is installed below node_modules is followed as far as its
 * package goes, so that a change of it can be told of.
 */
export class Modules {
  readonly #options: ModulesOptions
  readonly #importers = new Map<string, Set<string>>()
  readonly #versions = new Map<string, number>()
  readonly #requests = new Map<string, { readonly name: string; readonly base: string }>()
  readonly #urls = new Map<string, string>()
  readonly #names = new Map<string, string>()
  #hooks: { deregister(): void } | undefined
  #version = 0

  constructor(options: ModulesOptions = {}) {
    this.#options = options
  }

  /** Throws UNLOADABLE_PLUGIN with the reason. */
  async load(name: string, base: string | undefined): Promise<LoadedPlugin> {
    const isPath = name.startsWith('.') || name.startsWith('/') || name.startsWith('file:')
    const builtin = isPath ? undefined : await this.#options.builtin?.(name)
    if (builtin !== undefined) return { plugin: builtin }
    if (base === undefined) throw unloadable(name, 'there is no built-in plugin of that name')
    this.#hooks ??= registerHooks({
      resolve: (specifier, context, next) => this.#resolve(specifier, context, next),
    })
    const id = `${request}${++this.#version}`
    this.#requests.set(id, { name, base })
    try {
      const module = await this.#import(id)
      const url = this.#urls.get(id)
      if (url !== undefined) this.#names.set(url, name)
      return { plugin: pluginOf(module as Record<string, unknown>), ...(url !== undefined && { url }) }
    } catch (cause) {
      throw unloadable(name, messageOf(cause), cause)
    } finally {
      this.#requests.delete(id)
      this.#urls.delete(id)
    }
  }

  async #import(id: string): Promise<unknown> {
    const { timeoutMs = 10_000 } = this.#options
    const module: Promise<unknown> = import(id)
    if (await endsWithin(module, timeoutMs)) return module
    throw new Error(`its module did not load within ${timeoutMs} ms`)
  }

  /** `url` and every loaded file that imports it, near or far. Empty for a file nobody imported. */
  dependentsOf(url: string): Set<string> {
    const found = new Set<string>()
    const visit = [url]
    for (let next = visit.pop(); next !== undefined; next = visit.pop()) {
      const importers = this.#importers.get(next)
      if (importers === undefined || found.has(next)) continue
      found.add(next)
      visit.push(...importers)
    }
    return found
  }

  /** The name by which a file was last loaded as a plugin. */
  nameOf(url: string): string | undefined {
    return this.#names.get(url)
  }

  /** Every file that plugins were loaded from. */
  paths(): string[] {
    return [...this.#importers.keys()].map(url => fileURLToPath(url))
  }

  /** Makes the next load of each of `urls` read the file again. */
  renew(urls: Iterable<string>): void {
    const version = ++this.#version
    for (const url of urls) this.#versions.set(url, version)
  }

  dispose(): void {
    this.#hooks?.deregister()
    this.#hooks = undefined
  }

  #resolve(
    specifier: string,
    context: ResolveHookContext,
    next: (specifier: string, context?: Partial<ResolveHookContext>) => ResolveFnOutput,
  ): ResolveFnOutput {
    const wanted = this.#requests.get(specifier)
    const { name: asked, base } = wanted ?? { name: specifier, base: context.parentURL ?? '' }
    const parent = plain(base)
    const result = next(asked, wanted === undefined ? context : { ...context, parentURL: parent })
    const url = plain(result.url)
    if (wanted !== undefined) this.#begin(specifier, url)
    const isOurs = wanted !== undefined || this.#importers.has(parent)
    if (!isOurs || !url.startsWith('file:')) return result
    assertAdmitted({ specifier: asked, parent, url }, this.#options.fence)
    if (wanted === undefined && isInstalled(url) && packageOf(url) !== packageOf(parent)) return result
    const importers = this.#importers.get(url) ?? new Set()
    this.#importers.set(url, importers)
    if (wanted === undefined) importers.add(parent)
    const version = this.#versions.get(url)
    return version === undefined ? result : { ...result, url: `${url}?v=${version}` }
  }

  #begin(id: string, url: string): void {
    this.#urls.set(id, url)
    const { versions } = this.#options
    if (versions !== undefined && url.startsWith('file:')) assertVersions(url, versions)
  }
}

/** Whether a file is part of an installed package. */
export function isInstalled(url: string): boolean {
  return url.includes('/node_modules/')
}

/** The folder of an installed package, '' for what is not installed. */
function packageOf(url: string): string {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(url)?.[0] ?? ''
}

/** Throws where the package of a file says that it is not for this host. */
function assertVersions(url: string, versions: Readonly<Record<string, string>>): void {
  const manifest = findPackageJSON(url)
  if (manifest === undefined) return
  const text = readFileSync(manifest, 'utf8').replace(/^\uFEFF/, '')
  const { engines, peerDependencies } = JSON.parse(text) as Record<
    string,
    Record<string, unknown> | undefined
  >
  for (const [name, range] of Object.entries({ ...engines, ...peerDependencies })) {
    const version = Object.hasOwn(versions, name) ? versions[name] : undefined
    if (version === undefined || typeof range !== 'string' || isInRange(version, range)) continue
    throw new Error(`it is for ${name} ${range}, and this is ${version}`)
  }
}

function plain(url: string): string {
  return url.replace(/\?v=\d+$/, '')
}

function unloadable(name: string, reason: string, cause?: unknown): LoaderError {
  return new LoaderError('UNLOADABLE_PLUGIN', `plugin "${name}" cannot be loaded: ${reason}`, { cause })
}
