import { realpath } from 'node:fs/promises'
import { Buffer } from 'node:buffer'
import type { CheckedConfig } from './config.ts'
import { Draft } from './draft.ts'
import type { Unread } from './draft.ts'
import { RewindError } from './errors.ts'
import { makeCommit, readContent } from './import.ts'
import type { FileContent } from './import.ts'
import { parentOf } from './paths.ts'
import type { RawPath } from './paths.ts'
import { surroundings } from './env.ts'
import { Repository, repositoryFolder } from './repository.ts'
import type { TreeFacts } from './repository.ts'
import { dropStatIndex, readStatIndex, writeStatIndex } from './stat-index.ts'
import type { Base } from './stat-index.ts'
import { clearRef, removeLeftovers, tidy } from './tidy.ts'
import { isSameLook, lookAt, lookOf, looksSame, walk } from './walk.ts'
import type { RulesCache, Walked } from './walk.ts'
import { walkIgnored } from './walk-ignored.ts'

export interface TakeOptions {
  /** Points to the state afterwards. */
  readonly ref: string
  /** The state that comes before it in the same session. */
  readonly parent?: string | undefined
  readonly message: string
  /** Keeps how the files were then. One that changed since is left as the state before has it. */
  readonly sight?: Sight | undefined
  /** Keeps small files too that the ignore rules leave out; from then on they stay in. */
  readonly withIgnored?: true | undefined
  readonly signal?: AbortSignal | undefined
}

/** How all files looked at one moment; good for one state. */
export interface Sight {
  readonly walked: Walked
  readonly base: Base | undefined
}

interface KeepHow {
  readonly base: Base | undefined
  readonly isSight: boolean
}

/** A state that is kept. */
export interface Taken {
  readonly commit: string
  readonly facts: TreeFacts
  readonly ignored: number
  /** Ignored entries that it does not hold, or not whole; only where small ones were wanted. */
  readonly leftOut: readonly RawPath[]
}

/** The workspace of sessions, whose states are kept as they ask for it, one after another. */
export class Workspace {
  readonly root: string
  /** `root` as bytes. */
  readonly raw: RawPath
  readonly repository: Repository
  readonly #config: CheckedConfig
  readonly #without: ReadonlySet<RawPath>
  readonly #rules: RulesCache = new Map()
  /** What each ref points to, as far as this program set it. */
  readonly #refs = new Map<string, string>()
  #base: Base | undefined
  #isIndexStale = false
  #queue: Promise<unknown> = Promise.resolve()

  private constructor(root: string, repository: Repository, config: CheckedConfig, home: string) {
    this.root = root
    this.repository = repository
    this.raw = rawOf(root)
    this.#config = config
    this.#without = new Set([rawOf(home)])
  }

  /** Makes the private repository where there is none. Rejects where that cannot be. */
  static async open(folder: string, config: CheckedConfig, signal?: AbortSignal): Promise<Workspace> {
    const root = await realpath(folder).catch((cause: unknown) => {
      throw new RewindError('REWIND_FOLDER_GONE', `the folder "${folder}" is not there`, { cause })
    })
    const repository = await Repository.open(repositoryFolder(config.home, root), root, {
      around: surroundings(config),
      signal,
    })
    const workspace = new Workspace(root, repository, config, await realpath(config.home))
    workspace.#base = await readStatIndex(repository.folder)
    return workspace
  }

  /** Keeps the files as they are now. Costs no process where nothing changed since the last time. */
  take(options: TakeOptions): Promise<Taken> {
    const limit = AbortSignal.timeout(this.#config.maxMs)
    const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal])
    const taken = this.#queue
      .then(() => this.#take({ ...options, signal }))
      .catch((error: unknown) => {
        throw limit.aborted ? tooSlow(this.root, this.#config.maxMs, error) : error
      })
    this.#queue = taken.catch(() => undefined)
    return taken
  }

  /** Only looks, so that a state of this moment can be kept later. Small workspaces are done when it returns. */
  async look(): Promise<Sight> {
    const base = this.#base
    return { base, walked: await this.#walk(AbortSignal.timeout(this.#config.maxMs)) }
  }

  /** As far as looks tell. */
  async hasChangedSince({ walked }: Sight): Promise<boolean> {
    return !looksSame(walked, (await this.look()).walked)
  }

  /** What the last state holds is no longer trusted: the next one reads all files again. */
  async distrust(): Promise<void> {
    await this.#queue
    this.#base = undefined
    await dropStatIndex(this.repository.folder)
  }

  /** Writes down how the files looked, so that the next program need not read them. */
  async rest(): Promise<void> {
    await this.#queue
    if (this.#isIndexStale && this.#base !== undefined) {
      this.#isIndexStale = false
      await writeStatIndex(this.repository.folder, this.#base).catch(() => {})
    }
    const { keepDays } = this.#config
    const order = { keepDays, around: surroundings(this.#config), now: Date.now() }
    this.#queue = tidy(this.repository, order).catch(() => undefined)
  }

  async #take(options: TakeOptions & { readonly signal: AbortSignal }): Promise<Taken> {
    const { signal, parent, sight } = options
    signal.throwIfAborted()
    const walked = sight?.walked ?? (await this.#walk(signal))
    const leftOut = options.withIgnored === true ? await this.#addIgnored(walked, signal) : []
    const base = sight === undefined ? this.#base : sight.base
    try {
      return { ...(await this.#keep(walked, options, { base, isSight: sight !== undefined })), leftOut }
    } catch (error) {
      if (signal.aborted) throw error
      await this.repository.mend()
      await clearRef(this.repository, options.ref)
      // What the index or the session builds on may have been removed: then everything is read again, once.
      this.#base = undefined
      const isThere = parent !== undefined && (await this.repository.has(parent))
      const again = { ...options, parent: isThere ? parent : undefined }
      return { ...(await this.#keep(walked, again, { base: undefined, isSight: false })), leftOut }
    }
  }

  async #walk(signal: AbortSignal): Promise<Walked> {
    const { maxFileBytes, maxFiles, maxBytes } = this.#config
    const walked = await walk(this.raw, {
      maxFileBytes,
      maxFiles,
      maxBytes,
      without: this.#without,
      rules: this.#rules,
      signal,
    })
    this.#keepTracked(walked)
    const { files, bytes } = walked
    if (files.size > maxFiles)
      throw new RewindError('REWIND_OFF', `"${this.root}" has more than ${maxFiles} files`)
    if (bytes > maxBytes)
      throw new RewindError('REWIND_OFF', `the files of "${this.root}" have more than ${maxBytes} bytes`)
    return walked
  }

  /** Gives what of it is not kept. */
  async #addIgnored(walked: Walked, signal: AbortSignal): Promise<readonly RawPath[]> {
    const { ignoredMaxFileBytes, ignoredMaxBytes, ignoredMaxFiles, maxFiles, maxBytes } = this.#config
    const limits = {
      maxFileBytes: ignoredMaxFileBytes,
      maxBytes: Math.min(ignoredMaxBytes, maxBytes - walked.bytes),
      maxFiles: Math.min(ignoredMaxFiles, maxFiles - walked.files.size),
    }
    // What the last state holds is in already, whatever its size.
    const paths = walked.ignoredPaths.filter(path => !walked.files.has(path))
    const { files, leftOut } = await walkIgnored(this.raw, paths, { limits, without: this.#without, signal })
    for (const [path, look] of files) walked.files.set(path, look)
    return leftOut
  }

  /** What a state holds stays in the next ones, also where a rule says now that it is ignored. */
  #keepTracked({ files, tooLarge, folders }: Walked): void {
    const large = new Set(tooLarge)
    const isFolder = plainFolders(this.raw, folders)
    for (const path of this.#base?.known.keys() ?? []) {
      if (files.has(path) || large.has(path) || !isFolder(parentOf(path))) continue
      const stats = lookAt(this.raw, path)
      if (stats === undefined || !(stats.isFile() || stats.isSymbolicLink())) continue
      if (stats.size <= this.#config.maxFileBytes) files.set(path, lookOf(stats))
      else tooLarge.push(path)
    }
  }

  async #keep(
    walked: Walked,
    options: TakeOptions & { readonly signal: AbortSignal },
    { base, isSight }: KeepHow,
  ): Promise<Omit<Taken, 'leftOut'>> {
    const read = (path: RawPath): FileContent | Unread =>
      isSight ? this.#readUnchanged(path, walked) : this.#read(path, walked)
    const draft = new Draft(walked, base, read)
    const edits = draft.edits()
    const first = await edits.next()
    const { ref, parent, message, signal } = options
    const { ignored } = walked
    if (first.done === true && base !== undefined && draft.hasFactsOf(base)) {
      const commit = await this.#reusable(base, parent)
      this.#base = { ...base, commit: commit ?? base.commit, known: draft.known }
      if (commit !== undefined) {
        await this.#point(ref, commit)
        return { commit, facts: base.facts, ignored }
      }
    }
    const since = Date.now()
    const made = await makeCommit(this.repository.git, {
      baseTree: base?.tree,
      parent,
      ref,
      message,
      edits: chain(first, edits),
      facts: () => JSON.stringify(draft.facts()),
      signal,
    }).catch(async (error: unknown) => {
      await removeLeftovers(this.repository.folder, { since, now: Date.now() })
      throw error
    })
    const facts = draft.facts()
    this.#refs.set(ref, made.commit)
    this.#isIndexStale = true
    this.#base = { ...made, facts, known: draft.known }
    return { commit: made.commit, facts, ignored }
  }

  /** A commit with the files of `base` that `parent` is an ancestor of: what points to it keeps the older ones too. */
  async #reusable({ commit, tree }: Base, parent: string | undefined): Promise<string | undefined> {
    if (parent === undefined || parent === commit) return commit
    return (await this.repository.tree(parent)) === tree ? parent : undefined
  }

  async #point(ref: string, commit: string): Promise<void> {
    if (this.#refs.get(ref) === commit) return
    await this.repository.setRef(ref, commit)
    this.#refs.set(ref, commit)
  }

  /** As it was when it was walked by, or nothing. */
  #readUnchanged(path: RawPath, walked: Walked): FileContent | Unread {
    const seen = walked.files.get(path)
    const content = this.#read(path, walked)
    const stats = lookAt(this.raw, path)
    const isSame = seen !== undefined && stats !== undefined && isSameLook(seen, lookOf(stats))
    return isSame ? content : 'changed-since'
  }

  #read(path: RawPath, walked: Walked): FileContent | Unread {
    const seen = walked.files.get(path)
    if (seen === undefined) return undefined
    const content = readContent(this.raw, path, { seen, maxBytes: this.#config.maxFileBytes })
    if (typeof content !== 'string') return content
    walked.files.delete(path)
    if (content === 'unreadable') walked.unreadable.push(path)
    if (content === 'too-large') walked.tooLarge.push(path)
    if (content === 'special') walked.special.push(path)
    return undefined
  }
}

async function* chain<T>(first: IteratorResult<T, void>, rest: AsyncIterable<T>): AsyncIterable<T> {
  if (first.done === true) return
  yield first.value
  yield* rest
}

/** Whether a path is a folder, and no link is on the way to it; `known` are some that are. */
function plainFolders(root: RawPath, known: ReadonlySet<RawPath>): (folder: RawPath) => boolean {
  const found = new Map<RawPath, boolean>()
  const isPlain = (folder: RawPath): boolean => {
    if (folder === '' || known.has(folder)) return true
    const verdict =
      found.get(folder) ?? (isPlain(parentOf(folder)) && lookAt(root, folder)?.isDirectory() === true)
    found.set(folder, verdict)
    return verdict
  }
  return isPlain
}

function rawOf(path: string): RawPath {
  return Buffer.from(path, 'utf8').toString('latin1')
}

function tooSlow(root: string, ms: number, cause: unknown): RewindError {
  return new RewindError('REWIND_OFF', `a restore point of "${root}" took longer than ${ms} ms`, { cause })
}
