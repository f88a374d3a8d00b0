import type { BigIntStats, Dirent } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { _default, int, maximum, minLength, positive, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { KeyedLocks } from '../../kernel/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { readHeldFolder } from './anchor.ts'
import { decodeStream, decodeText, encodeText } from './decode.ts'
import { editRefusal } from './edit-report.ts'
import { applySplices, planEdit } from './edit.ts'
import { FsError } from './errors.ts'
import { hasCode, throwIfAborted, toFsError } from './failure.ts'
import { identify, infoOf, lookAt, lookAtLink, versionOf } from './identity.ts'
import { withLineFeeds } from './lines.ts'
import { lookAtReplaced } from './replaced.ts'
import { hashBytes, hashFile, readPieces, readWhole } from './read-file.ts'
import type {
  ConfirmChange,
  FileSystem,
  FsChangeHashes,
  FsDirEntry,
  FsEditIntent,
  FsEditMatch,
  FsEditOutcome,
  FsEditRequest,
  FsInfo,
  FsPathInfo,
  FsResolveOptions,
  FsTarget,
  FsTargetKey,
  FsWriteIntent,
  FsWriteOutcome,
} from './service.ts'
import { publish } from './staging.ts'

export interface LocalFsConfig {
  /** What relative paths start from where a caller names nothing else. Default: the folder of the process. */
  readonly cwd: string
  /** A file of this many bytes or more is changed without showing what changed. Default 10 MiB. */
  readonly diffBasisMaxBytes: number
}

/** One look at a file that is about to change. */
interface Before {
  readonly stats: BigIntStats | undefined
  readonly text: string | null
  readonly hash: string | null
}

const parallelLooks = 32

/** The files of this machine. Locks hold within this process; another one is noticed by the version. */
export class LocalFs implements FileSystem {
  readonly #cwd: string
  readonly #maxBasis: number
  readonly #locks = new KeyedLocks<string>()

  constructor(config: LocalFsConfig) {
    this.#cwd = config.cwd
    this.#maxBasis = config.diffBasisMaxBytes
  }

  async resolve(path: string, { cwd = this.#cwd, signal }: FsResolveOptions = {}): Promise<FsTarget> {
    return await cancellable(signal, `finding ${path}`, () => identify(path, cwd))
  }

  processPath(target: FsTarget): string {
    return target.targetKey
  }

  fileUrl(target: FsTarget): string {
    return pathToFileURL(target.targetKey).href
  }

  async contains(parent: FsTarget, child: FsTarget, signal?: AbortSignal): Promise<boolean> {
    const [root, path] = [parent.targetKey, child.targetKey]
    if (path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)) return true
    return await cancellable(signal, `looking at ${child.displayPath}`, () => isBelow(root, path))
  }

  async stat(target: FsTarget, signal?: AbortSignal): Promise<FsInfo | undefined> {
    const looking = () => lookAt(target.targetKey)
    const stats = await cancellable(signal, `looking at ${target.displayPath}`, looking)
    return stats && infoOf(stats)
  }

  async lstat(
    path: string,
    { cwd = this.#cwd }: { readonly cwd?: string } = {},
    signal?: AbortSignal,
  ): Promise<FsPathInfo | undefined> {
    const stats = await cancellable(signal, `looking at ${path}`, () => lookAtLink(resolve(cwd, path)))
    if (stats === undefined) return undefined
    return stats.isSymbolicLink() ? { version: versionOf(stats), type: 'symlink' } : infoOf(stats)
  }

  async readText(target: FsTarget, signal?: AbortSignal): Promise<string> {
    const reading = () => readWhole(target, { signal })
    return decodeText(await cancellable(signal, `reading ${target.displayPath}`, reading), target.displayPath)
      .text
  }

  async streamText(target: FsTarget, signal?: AbortSignal): Promise<AsyncIterable<string>> {
    throwIfAborted(signal, `reading ${target.displayPath}`)
    return decodeStream(readPieces(target, signal), target.displayPath)
  }

  async readBytes(target: FsTarget, signal: AbortSignal | undefined, maxBytes: number): Promise<Uint8Array> {
    const reading = () => readWhole(target, { maxBytes, signal })
    return await cancellable(signal, `reading ${target.displayPath}`, reading)
  }

  async listDir(target: FsTarget, signal?: AbortSignal): Promise<readonly FsDirEntry[]> {
    const doing = `listing ${target.displayPath}`
    const entries = await cancellable(signal, doing, () => readFolder(target))
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    const listed: FsDirEntry[] = []
    for (let at = 0; at < entries.length; at += parallelLooks) {
      const looks = entries.slice(at, at + parallelLooks).map(entry => lookAtEntry(target, entry))
      listed.push(...(await cancellable(signal, doing, () => Promise.all(looks))))
    }
    return listed
  }

  async writeText(
    target: FsTarget,
    content: string,
    expected?: FsWriteIntent,
    signal?: AbortSignal,
    confirm?: ConfirmChange,
  ): Promise<FsWriteOutcome> {
    return await this.#change(target, 'write', signal, async () => {
      const stats = await lookAt(target.targetKey)
      assertFile(stats, target)
      if (expected?.kind === 'createIfAbsent' && stats !== undefined) throw notObserved(target)
      if (expected?.kind === 'replaceIfVersion') assertVersion(stats, expected.version, target)
      const before = await this.#before(target, stats, signal)
      const bytes = Buffer.from(content)
      const mayOverwrite = expected === undefined
      const guard = expected?.kind === 'replaceIfVersion' ? stats : undefined
      const hashes = { before: before.hash, after: hashBytes(bytes) }
      await this.#publish(target, bytes, { stats, guard, mayOverwrite, signal, hashes, confirm })
      return {
        operation: stats === undefined ? 'create' : 'update',
        ...(await replaced(target, stats)),
        hashes,
        before: bytes.length < this.#maxBasis ? before.text : null,
        after: withLineFeeds(content),
      }
    })
  }

  async editText(
    target: FsTarget,
    edits: readonly FsEditRequest[],
    expected?: FsEditIntent,
    signal?: AbortSignal,
    confirm?: ConfirmChange,
  ): Promise<FsEditOutcome> {
    if (edits.length === 0) throw new TypeError('there is no edit')
    if (edits.some(edit => edit.oldString === '')) throw new TypeError('the text to replace is empty')
    return await this.#change(target, 'edit', signal, async () => {
      const stats = await lookAt(target.targetKey)
      if (stats === undefined) throw stale(target, 'is gone')
      assertFile(stats, target)
      if (expected !== undefined) assertVersion(stats, expected.version, target)
      const raw = await readWhole(target, { signal })
      const { text, hasMark } = decodeText(raw, target.displayPath, { sniff: raw.length })
      const { after, match, replacements } = makeEdits(text, edits, target)
      const bytes = encodeText({ text: after, hasMark })
      const hashes = { before: hashBytes(raw), after: hashBytes(bytes) }
      await this.#publish(target, bytes, {
        stats,
        guard: stats,
        mayOverwrite: false,
        signal,
        hashes,
        confirm,
      })
      const isSmall = Math.max(raw.length, bytes.length) < this.#maxBasis
      return {
        ...(await replaced(target, stats)),
        hashes,
        before: isSmall ? withLineFeeds(text) : null,
        after: withLineFeeds(after),
        match,
        replacements,
      }
    })
  }

  async #change<T>(
    target: FsTarget,
    verb: string,
    signal: AbortSignal | undefined,
    job: () => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#locks.run(target.targetKey, async () => {
        throwIfAborted(signal, `${verb} of ${target.displayPath}`)
        return await job()
      })
    } catch (error) {
      throw toFsError(error, `${verb} ${target.displayPath}`)
    }
  }

  async #before(
    target: FsTarget,
    stats: BigIntStats | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Before> {
    if (stats === undefined) return { stats, text: null, hash: null }
    if (Number(stats.size) >= this.#maxBasis)
      return { stats, text: null, hash: await hashFile(target, signal) }
    const bytes = await readWhole(target, { signal })
    return { stats, text: textOrNull(bytes, target), hash: hashBytes(bytes) }
  }

  async #publish(
    target: FsTarget,
    content: Uint8Array,
    found: {
      readonly stats: BigIntStats | undefined
      /** The file must still be this one right before it is replaced. */
      readonly guard: BigIntStats | undefined
      readonly mayOverwrite: boolean
      readonly signal: AbortSignal | undefined
      readonly hashes: FsChangeHashes
      readonly confirm: ConfirmChange | undefined
    },
  ): Promise<void> {
    await publish({
      path: target.targetKey,
      displayPath: target.displayPath,
      content,
      replaces: found.stats,
      mayOverwrite: found.mayOverwrite,
      maker: { pid: process.pid, umask: process.umask() },
      confirm: async () => {
        await found.confirm?.(found.hashes)
        throwIfAborted(found.signal, `changing ${target.displayPath}`)
        if (found.guard === undefined) return
        assertVersion(await lookAt(target.targetKey), versionOf(found.guard), target)
      },
    })
  }
}

export const localFsFields = () => ({
  cwd: _default(string().check(minLength(1)), () => process.cwd()),
  diffBasisMaxBytes: _default(int().check(positive(), maximum(2 ** 29)), 10 * 2 ** 20),
})

const schema = () => prefault(strictObject(localFsFields()), {})

export const localFs: PluginObject<input<ReturnType<typeof schema>>, LocalFsConfig> = {
  name: 'fs-local',
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: LocalFsConfig) {
    ctx.provide('fs', new LocalFs(config))
  },
}

/** Cancelled before and after each call of the system; what the call itself did stays done. */
async function cancellable<T>(
  signal: AbortSignal | undefined,
  doing: string,
  call: () => Promise<T>,
): Promise<T> {
  throwIfAborted(signal, doing)
  try {
    return await call()
  } finally {
    throwIfAborted(signal, doing)
  }
}

/** Walks up by identity of folders, for systems where one folder has several spellings. */
async function isBelow(root: string, path: string): Promise<boolean> {
  const wanted = await lookAt(root)
  if (wanted === undefined || !wanted.isDirectory()) return false
  for (let at = path, last = ''; at !== last; last = at, at = dirname(at)) {
    const stats = await lookAt(at)
    if (stats !== undefined && stats.dev === wanted.dev && stats.ino === wanted.ino) return true
  }
  return false
}

async function readFolder({ targetKey, displayPath }: FsTarget): Promise<Dirent[]> {
  try {
    return await readHeldFolder(targetKey)
  } catch (error) {
    if (hasCode(error, 'ENOTDIR'))
      throw new FsError('FS_NOT_DIRECTORY', `${displayPath} is not a folder`, { cause: error })
    throw toFsError(error, `list ${displayPath}`)
  }
}

/** An entry that cannot be looked at is listed as what it says it is, and stops nobody. */
async function lookAtEntry(parent: FsTarget, entry: Dirent): Promise<FsDirEntry> {
  const { name } = entry
  const displayPath = join(parent.displayPath, name)
  const plain = { displayPath, targetKey: join(parent.targetKey, name) as FsTargetKey }
  try {
    const target = entry.isSymbolicLink() ? await identify(plain.targetKey, parent.targetKey) : plain
    const stats = await lookAt(target.targetKey)
    if (stats !== undefined) return { name, ...infoOf(stats), target: { ...target, displayPath } }
    return { name, type: 'other', target: plain }
  } catch {
    return { name, type: entry.isDirectory() ? 'directory' : 'other', target: plain }
  }
}

/** From the most to the least exact. */
const matches: readonly FsEditMatch[] = ['exact', 'trailing-space', 'punctuation', 'indentation']

/** Throws for the first edit that cannot be made. */
function makeEdits(text: string, edits: readonly FsEditRequest[], { displayPath }: FsTarget) {
  let [after, worst, replacements] = [text, 0, 0]
  for (const [index, edit] of edits.entries()) {
    const plan = planEdit(after, edit)
    if (plan.kind !== 'replace') throw editRefusal(plan, displayPath, { index, count: edits.length })
    after = applySplices(after, plan.splices)
    worst = Math.max(worst, matches.indexOf(plan.match))
    replacements += plan.splices.length
  }
  return { after, match: matches[worst] ?? 'exact', replacements }
}

function assertFile(stats: BigIntStats | undefined, { displayPath }: FsTarget): void {
  if (stats !== undefined && !stats.isFile())
    throw new FsError('FS_NOT_REGULAR_FILE', `${displayPath} is not a file`)
}

function assertVersion(stats: BigIntStats | undefined, version: string, target: FsTarget): void {
  if (stats === undefined) throw stale(target, 'is gone')
  if (versionOf(stats) !== version) throw stale(target, 'has changed')
}

function stale({ displayPath }: FsTarget, what: string): FsError {
  return new FsError('FS_STALE_VERSION', `${displayPath} ${what} since it was read`)
}

function notObserved({ displayPath }: FsTarget): FsError {
  return new FsError('FS_NOT_OBSERVED', `${displayPath} exists and has not been read`)
}

function textOrNull(bytes: Buffer, { displayPath }: FsTarget): string | null {
  try {
    return withLineFeeds(decodeText(bytes, displayPath, { sniff: bytes.length }).text)
  } catch {
    return null
  }
}

async function replaced(target: FsTarget, before: BigIntStats | undefined) {
  const { version, ...lost } = await lookAtReplaced(target.targetKey, before)
  if (version === undefined) throw stale(target, 'is gone')
  return { version, ...lost }
}
