import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { projectParts } from '../trust/index.ts'
import type { ProjectParts, TrustPart } from '../trust/index.ts'
import type { HooksConfig } from './config.ts'
import { guardedPoints } from './events.ts'
import { parseHookFile, unusableFile } from './hook-file.ts'
import type { HookFile, HookHandler } from './hook-file.ts'
import type { HookNoticeCode } from './notice.ts'
import { projectFiles } from './project-files.ts'
import type { HookSource } from './sources.ts'
import { changedText, goneText, leftOutText, scriptsChanged, untrustedText, unusableText } from './text.ts'

/** Tells the person. */
export type TellNotice = (code: HookNoticeCode, message: string) => void

interface LoadedFile {
  /** Changes when the file does. */
  readonly stamp: string
  /** What its hooks may run of what the project brings, by content. */
  readonly scripts: string
  readonly handlers: readonly HookHandler[]
}

interface FoundFile extends Pick<LoadedFile, 'stamp' | 'scripts'> {
  readonly source: HookSource
  readonly path: string
  /** Why it is not read. */
  readonly problem?: string
}

export interface HookFilesPlace {
  /** Of the session. */
  readonly folder: string | undefined
  readonly sources: readonly HookSource[]
  readonly config: Pick<HooksConfig, 'home' | 'onFailure'>
  readonly tell: TellNotice
}

const largestBytes = 4 * 1024 * 1024

/**
 * The hooks of one session's files, as they are now.
 *
 * A file of the project counts only with exactly the content that a person admitted. Where it became another one, what
 * was admitted stays in force; where it is gone, so are its hooks.
 */
export class HookFiles {
  readonly #ctx: Context
  readonly #folder: string | undefined
  readonly #sources: readonly HookSource[]
  readonly #config: HookFilesPlace['config']
  readonly #tell: TellNotice
  readonly #loaded = new Map<HookSource, LoadedFile>()
  /** What was said already, so that it is said once. */
  readonly #told = new Set<string>()

  constructor(ctx: Context, { folder, sources, config, tell }: HookFilesPlace) {
    this.#ctx = ctx
    this.#folder = folder
    this.#sources = sources
    this.#config = config
    this.#tell = tell
  }

  /** In the order of files, and of each file. */
  get handlers(): readonly HookHandler[] {
    return this.#sources.flatMap(source => this.#loaded.get(source)?.handlers ?? [])
  }

  /** Reads what is new. */
  async refresh(): Promise<void> {
    const found = (await Promise.all(this.#sources.map(source => this.#find(source)))).filter(
      file => file !== undefined,
    )
    for (const [source, { handlers }] of this.#loaded) {
      if (found.some(file => file.source === source)) continue
      this.#loaded.delete(source)
      if (handlers.length > 0) this.#tell('HOOKS_CHANGED', goneText(source.label))
    }
    for (const file of found.filter(({ source }) => !source.isOfProject))
      if (this.#isNew(file)) await this.#load(file)
    const brought = found.filter(({ source }) => source.isOfProject)
    if (brought.length > 0) await this.#refreshBrought(brought)
  }

  #isNew({ source, stamp, scripts }: FoundFile): boolean {
    const loaded = this.#loaded.get(source)
    return loaded?.stamp !== stamp || loaded.scripts !== scripts
  }

  async #find(source: HookSource): Promise<FoundFile | undefined> {
    const { path, label, isOfProject } = source
    const scripts = ''
    if (path === undefined) {
      const problem = 'a hook file is named from / or ~/'
      return { source, path: label, stamp: 'nowhere', scripts, problem }
    }
    try {
      const stats = await stat(path)
      const { mtimeMs, ctimeMs, size, ino } = stats
      const found = { source, path, stamp: `${ino}.${size}.${mtimeMs}.${ctimeMs}`, scripts }
      // Reading what is no file may never end.
      if (!stats.isFile()) return { ...found, problem: 'it is no file' }
      return size > largestBytes ? { ...found, problem: `it is larger than ${largestBytes} bytes` } : found
    } catch (error) {
      if (!isOfProject) this.#once('HOOK_NOT_LOADED', leftOutText(label, messageOf(error)))
      return undefined
    }
  }

  async #load(file: FoundFile, expected?: string): Promise<void> {
    const { path, source, problem } = file
    const { label, dialect, env } = source
    const place = { label, dialect, env }
    const bytes = problem ?? (await readFile(path).catch((error: unknown) => messageOf(error)))
    if (typeof bytes === 'string') this.#take(file, { handlers: [unusableFile(bytes, place)], problems: [] })
    else if (expected !== undefined && digestOf(bytes) !== expected)
      this.#once('HOOKS_CHANGED', changedText([label]))
    else this.#take(file, parseHookFile(bytes.toString('utf8'), place))
  }

  /** What cannot be used stays, to deny what it was to guard, unless failures count for nothing. */
  #take({ source, stamp, scripts }: FoundFile, { handlers, problems }: HookFile): void {
    const isStrict = this.#config.onFailure === 'deny'
    const kept = isStrict ? handlers : handlers.filter(({ unusable }) => unusable === undefined)
    this.#loaded.set(source, { stamp, scripts, handlers: kept })
    for (const problem of problems) this.#once('HOOK_NOT_LOADED', problem)
    for (const { id, unusable } of handlers) {
      if (unusable === undefined) continue
      this.#once('HOOK_NOT_LOADED', (isStrict ? unusableText : leftOutText)(id, unusable))
    }
  }

  async #refreshBrought(files: readonly FoundFile[]): Promise<void> {
    const { home } = this.#config
    const found = projectParts(this.#folder ?? '', { only: 'hooks', ...(home !== undefined && { home }) })
    const news = files
      .map(file => ({ ...file, scripts: scriptsFor(file.source.label, found) }))
      .filter(file => this.#isNew(file))
    if (news.length > 0) await this.#loadBrought(news, found)
  }

  /** A script beside a hook file that nobody admitted holds back the file too. */
  async #loadBrought(files: readonly FoundFile[], { parts: hooks, refused }: ProjectParts): Promise<void> {
    const folder = this.#folder ?? ''
    const trust = this.#ctx.get('trust')
    const waiting = (await trust?.pending(folder, hooks)) ?? hooks
    const isTrusted = (await trust?.stateOf(folder)) === 'trusted'
    const left: TrustPart[] = []
    for (const file of files) {
      const { label } = file.source
      const own = waiting.filter(({ path }) => folderOf(path) === folderOf(label))
      const part = hooks.find(({ path }) => path === label)
      if (refused.includes(label))
        this.#once('HOOK_NOT_LOADED', leftOutText(label, 'it is a link, too large or cannot be read'))
      // What nobody brings, as in the program's own folder, or what has just gone.
      else if (part === undefined) this.#loaded.delete(file.source)
      else if (own.length === 0) await this.#load(file, part.sha256)
      else {
        left.push(...own)
        this.#holdBack(file)
      }
    }
    if (left.length === 0) return
    const paths = [...new Set(left.map(({ path }) => path))]
    const wasLoaded = files.some(({ source }) => this.#loaded.has(source))
    this.#once(
      wasLoaded ? 'HOOKS_CHANGED' : 'HOOKS_NOT_TRUSTED',
      isTrusted ? changedText(paths) : untrustedText(paths),
    )
  }

  /** Hooks that are loaded do not run scripts that became others; what they were to guard is denied. */
  #holdBack({ source, scripts }: FoundFile): void {
    const loaded = this.#loaded.get(source)
    if (loaded === undefined || loaded.scripts === scripts) return
    const held = loaded.handlers
      .filter(({ point }) => this.#config.onFailure === 'deny' && guardedPoints.has(point))
      .map(handler => ({ ...handler, unusable: scriptsChanged }))
    this.#loaded.set(source, { stamp: 'held back', scripts, handlers: held })
  }

  #once(code: HookNoticeCode, message: string): void {
    if (this.#told.has(message)) return
    this.#told.add(message)
    this.#tell(code, message)
  }
}

function folderOf(path: string): string {
  return path.replace(/\/.*/, '')
}

function digestOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Of what lies in the folder of a hook file, but for hook files. */
function scriptsFor(label: string, { parts, refused }: ProjectParts): string {
  const all = [...parts.map(({ path, sha256 }) => [path, sha256]), ...refused.map(path => [path, 'refused'])]
  const scripts = all.filter(
    ([path = '']) => folderOf(path) === folderOf(label) && !projectFiles.some(([other]) => other === path),
  )
  return digestOf(JSON.stringify(scripts))
}
