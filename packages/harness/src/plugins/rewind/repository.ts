import { createHash } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isFields, makeFolders, messageOf, parseJson } from '../../kernel/index.ts'
import { batches } from './batches.ts'
import { RewindError } from './errors.ts'
import { Git } from './git.ts'
import type { GitSurroundings } from './git.ts'
import { oidOf } from './import.ts'
import { shownPath } from './paths.ts'
import type { RawPath } from './paths.ts'

/** One file or link of a state. */
export interface TreeFile {
  /** As git keeps it: 100644, 100755 or 120000, octal. */
  readonly kind: '100644' | '100755' | '120000'
  /** Permission bits, of a link 0o777. */
  readonly mode: number
  readonly oid: string
  readonly size: number
}

/** What a state has besides its files; kept in it as `facts.json`. Paths as people see them. */
export interface TreeFacts extends TreeLists {
  /** Permission bits of plain and of executable files. */
  readonly modes: readonly [plain: number, executable: number]
  /** Files with other permission bits. */
  readonly odd: Readonly<Record<string, number>>
}

/** What stands beside the files in a workspace. */
export interface TreeLists {
  /** Folders without anything in them. */
  readonly empty: readonly string[]
  readonly tooLarge: readonly string[]
  readonly unreadable: readonly string[]
  readonly special: readonly string[]
  /** Ignore rules from outside of the files. */
  readonly exclude: string
}

export interface TreeState {
  readonly files: ReadonlyMap<RawPath, TreeFile>
  readonly facts: TreeFacts
}

export interface PathChange {
  readonly path: RawPath
  readonly status: 'added' | 'modified' | 'deleted'
  /** Absent for binary files. */
  readonly insertions?: number
  readonly deletions?: number
}

/** Where the files are in a commit. There is no such folder where there are no files. */
const below = 'files/'
const marker = 'workspace.json'

const config = `[core]
	repositoryformatversion = 0
	bare = true
	sharedRepository = 0600
	quotePath = false
	protectNTFS = false
	protectHFS = false
	fsync = all
	logAllRefUpdates = false
	attributesFile = /dev/null
	hooksPath = /dev/null
[gc]
	auto = 0
[maintenance]
	auto = false
`

interface OpenOptions {
  readonly around: GitSurroundings
  readonly signal: AbortSignal | undefined
}

/** Where the states of one workspace are kept, by its real path. */
export function repositoryFolder(home: string, workspace: string): string {
  return join(home, 'restore', createHash('sha256').update(workspace).digest('hex').slice(0, 32))
}

/** The private repository of one workspace. States are commits: `files/` as they are, and `facts.json`. */
export class Repository {
  readonly folder: string
  readonly git: Git

  private constructor(folder: string, around: GitSurroundings) {
    this.folder = folder
    this.git = new Git(folder, around)
  }

  /** Undefined where nothing was ever kept for the workspace. */
  static async find(folder: string, around: GitSurroundings): Promise<Repository | undefined> {
    const isThere = await readFile(join(folder, marker)).then(
      () => true,
      () => false,
    )
    return isThere ? new Repository(folder, around) : undefined
  }

  /** Makes it where it is not there yet; one whose making was broken off is made again. */
  static async open(folder: string, workspace: string, { around, signal }: OpenOptions): Promise<Repository> {
    const found = await Repository.find(folder, around)
    if (found !== undefined) return found
    makeFolders(folder)
    const repository = new Repository(folder, around)
    await repository.#make(signal)
    await writeFile(join(folder, `${marker}.new`), `${JSON.stringify({ workspace })}\n`, {
      mode: 0o600,
    })
    await rename(join(folder, `${marker}.new`), join(folder, marker))
    return repository
  }

  async #make(signal?: AbortSignal): Promise<void> {
    // Git reads it first, and writes what it thinks best into it.
    await this.#configure()
    await this.git.run(['init', '--bare', '--quiet', '--shared=0600', '--template='], { signal })
    await this.#configure()
  }

  async #configure(): Promise<void> {
    const path = join(this.folder, 'config')
    await writeFile(`${path}.new`, config, { mode: 0o600 })
    await rename(`${path}.new`, path)
  }

  /** Makes what git needs in it once more where that is not there, or no longer what git wrote. */
  async mend(): Promise<void> {
    if (await this.#works()) return
    await this.#make()
    if (await this.#works()) return
    const packed = join(this.folder, 'packed-refs')
    await rename(packed, `${packed}.damaged`).catch(() => {})
  }

  #works(): Promise<boolean> {
    return this.#succeeds(['for-each-ref', '--count=1'])
  }

  /** Rejects with REWIND_POINT_GONE. */
  async state(commit: string): Promise<TreeState> {
    const [listing, facts] = await Promise.all([
      this.#ofPoint(commit, ['ls-tree', '-r', '-z', '-l', commit, below]),
      this.#ofPoint(commit, ['cat-file', 'blob', `${commit}:facts.json`]),
    ])
    const read = parseJson(facts.toString('utf8'))
    if (!isFacts(read))
      throw new RewindError('REWIND_POINT_GONE', `restore point ${commit.slice(0, 12)} cannot be read`)
    return { files: filesIn(listing.toString('latin1'), read), facts: read }
  }

  async tree(commit: string): Promise<string> {
    return (await this.#ofPoint(commit, ['rev-parse', '--verify', '--quiet', `${commit}^{tree}`]))
      .toString('latin1')
      .trim()
  }

  /** Lines are counted as git does; renames are a deletion and an addition. */
  async changes(from: string, to: string): Promise<readonly PathChange[]> {
    const args = ['diff-tree', '-r', '-z', '--raw', '--numstat', '--no-renames', `--relative=${below}`]
    const output = await this.#ofPoint(to, [...args, from, to])
    return changesIn(output.toString('latin1'))
  }

  async patch(from: string, to: string): Promise<string> {
    const args = ['diff-tree', '-r', '-p', '--no-renames', '--no-ext-diff', '--no-textconv', '--no-color']
    return (await this.#ofPoint(to, [...args, `--relative=${below}`, from, to])).toString('utf8')
  }

  /** In the order asked for; what it holds is in memory at once. */
  async blobs(oids: readonly string[]): Promise<readonly Uint8Array[]> {
    if (oids.length === 0) return []
    const output = await this.git.run(['cat-file', '--batch'], { input: `${oids.join('\n')}\n` })
    return blobsIn(output, oids)
  }

  /** Those of the contents, by their names, that are no longer kept as they were. */
  async lost(files: Iterable<TreeFile>): Promise<ReadonlySet<string>> {
    const lost = new Set<string>()
    const all = [...new Map([...files].map(file => [file.oid, file])).values()]
    for (const batch of batches(all, ({ size }) => size)) {
      const oids = batch.map(({ oid }) => oid)
      if (await this.#areWhole(oids)) continue
      for (const oid of oids) if (!(await this.#areWhole([oid]))) lost.add(oid)
    }
    return lost
  }

  async #areWhole(oids: readonly string[]): Promise<boolean> {
    try {
      const contents = await this.blobs(oids)
      return contents.every((content, index) => oidOf(content) === oids[index])
    } catch {
      return false
    }
  }

  has(commit: string): Promise<boolean> {
    return this.#succeeds(['cat-file', '-e', `${commit}^{commit}`])
  }

  #succeeds(args: readonly string[]): Promise<boolean> {
    return this.git.run(args).then(
      () => true,
      () => false,
    )
  }

  async setRef(ref: string, commit: string): Promise<void> {
    await this.#ofPoint(commit, ['update-ref', ref, commit])
  }

  /** One that was just set: nobody packed it yet. A lock of all refs, whoever left it, stops nothing. */
  async dropNewRef(ref: string): Promise<void> {
    await rm(join(this.folder, ref), { force: true })
  }

  async #ofPoint(commit: string, args: readonly string[]): Promise<Buffer> {
    try {
      return await this.git.run(args)
    } catch (cause) {
      if (await this.has(commit)) throw cause
      const message = `restore point ${commit.slice(0, 12)} is no longer kept: ${messageOf(cause)}`
      throw new RewindError('REWIND_POINT_GONE', message, { cause })
    }
  }
}

function isFacts(read: unknown): read is TreeFacts {
  if (!isFields(read) || !isFields(read['odd']) || typeof read['exclude'] !== 'string') return false
  return ['modes', 'empty', 'tooLarge', 'unreadable', 'special'].every(key => Array.isArray(read[key]))
}

function filesIn(listing: string, { modes: [plain, executable], odd }: TreeFacts): Map<RawPath, TreeFile> {
  const files = new Map<RawPath, TreeFile>()
  for (const line of listing.split('\0')) {
    if (line === '') continue
    const tab = line.indexOf('\t')
    const [kind = '', , oid = '', size = ''] = line.slice(0, tab).split(/ +/)
    const path = line.slice(tab + 1 + below.length)
    const usual = kind === '100755' ? executable : plain
    const shown = shownPath(path)
    const own = Object.hasOwn(odd, shown) ? odd[shown] : undefined
    const mode = kind === '120000' ? 0o777 : (own ?? usual)
    files.set(path, { kind: kind as TreeFile['kind'], mode, oid, size: Number(size) })
  }
  return files
}

/** First the raw entries, then the counts, in one stream of records that end with NUL. */
function changesIn(output: string): readonly PathChange[] {
  const records = output.split('\0')
  const found = new Map<RawPath, PathChange>()
  let at = 0
  for (; records[at]?.startsWith(':') === true; at += 2) {
    const status = statuses[records[at]?.at(-1) ?? ''] ?? 'modified'
    const path = records[at + 1] ?? ''
    found.set(path, { path, status })
  }
  for (const record of records.slice(at)) {
    const [, insertions, deletions, path = ''] = /^(\d+)\t(\d+)\t(.*)$/s.exec(record) ?? []
    const change = found.get(path)
    if (change !== undefined)
      found.set(path, { ...change, insertions: Number(insertions), deletions: Number(deletions) })
  }
  return [...found.values()]
}

const statuses: Readonly<Record<string, PathChange['status']>> = { A: 'added', D: 'deleted' }

function blobsIn(output: Buffer, oids: readonly string[]): readonly Uint8Array[] {
  let at = 0
  return oids.map(oid => {
    const end = output.indexOf(10, at)
    const [, type, size] = output.toString('latin1', at, end).split(' ')
    if (type !== 'blob') throw new RewindError('REWIND_POINT_GONE', `the content ${oid} is no longer kept`)
    const start = end + 1
    at = start + Number(size) + 1
    return output.subarray(start, at - 1)
  })
}
