import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { projectParts } from '../trust/index.ts'
import type { TrustPart } from '../trust/index.ts'
import type { HooksConfig } from './config.ts'
import { parseHookFile, unusableFile } from './hook-file.ts'
import type { HookFile, HookHandler } from './hook-file.ts'
import type { HookNoticeCode } from './notice.ts'
import type { HookSource } from './sources.ts'
import { changedText, leftOutText, untrustedText, unusableText } from './text.ts'

/** Tells the person. */
export type TellNotice = (code: HookNoticeCode, message: string) => void

interface LoadedFile {
  /** Changes when the file does. */
  readonly stamp: string
  readonly handlers: readonly HookHandler[]
}

interface FoundFile {
  readonly source: HookSource
  readonly path: string | undefined
  readonly stamp: string
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
    for (const source of this.#loaded.keys())
      if (!found.some(file => file.source === source)) this.#loaded.delete(source)
    const news = found.filter(({ source, stamp }) => this.#loaded.get(source)?.stamp !== stamp)
    for (const file of news.filter(({ source }) => !source.isOfProject)) await this.#load(file)
    const brought = news.filter(({ source }) => source.isOfProject)
    if (brought.length > 0) await this.#loadBrought(brought)
  }

  async #find(source: HookSource): Promise<FoundFile | undefined> {
    const { path, label, isOfProject } = source
    if (path === undefined) return { source, path, stamp: 'nowhere' }
    try {
      const { mtimeMs, ctimeMs, size, ino } = await stat(path)
      return { source, path, stamp: `${ino}.${size}.${mtimeMs}.${ctimeMs}` }
    } catch (error) {
      if (!isOfProject) this.#once('HOOK_NOT_LOADED', leftOutText(label, messageOf(error)))
      return undefined
    }
  }

  async #load(file: FoundFile, expected?: string): Promise<void> {
    const { path, source } = file
    const { label, dialect, env } = source
    const place = { label, dialect, env }
    const bytes =
      path === undefined
        ? 'a hook file is named from / or ~/'
        : await readFile(path).catch((error: unknown) => messageOf(error))
    const giveUp = (why: string): void =>
      this.#take(file, { handlers: [unusableFile(why, place)], problems: [] })
    if (typeof bytes === 'string') giveUp(bytes)
    else if (bytes.length > largestBytes) giveUp(`it is larger than ${largestBytes} bytes`)
    else if (expected !== undefined && createHash('sha256').update(bytes).digest('hex') !== expected)
      this.#once('HOOKS_CHANGED', changedText([label]))
    else this.#take(file, parseHookFile(bytes.toString('utf8'), place))
  }

  /** What cannot be used stays, to deny what it was to guard, unless failures count for nothing. */
  #take({ source, stamp }: FoundFile, { handlers, problems }: HookFile): void {
    const isStrict = this.#config.onFailure === 'deny'
    const kept = isStrict ? handlers : handlers.filter(({ unusable }) => unusable === undefined)
    this.#loaded.set(source, { stamp, handlers: kept })
    for (const problem of problems) this.#once('HOOK_NOT_LOADED', problem)
    for (const { id, unusable } of handlers) {
      if (unusable === undefined) continue
      this.#once('HOOK_NOT_LOADED', (isStrict ? unusableText : leftOutText)(id, unusable))
    }
  }

  /** A script beside a hook file that nobody admitted holds back the file too. */
  async #loadBrought(files: readonly FoundFile[]): Promise<void> {
    const folder = this.#folder ?? ''
    const { home } = this.#config
    const { parts, refused } = projectParts(folder, home === undefined ? {} : { home })
    const hooks = parts.filter(({ kind }) => kind === 'hooks')
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
      else left.push(...own)
    }
    if (left.length === 0) return
    const paths = [...new Set(left.map(({ path }) => path))]
    const wasLoaded = files.some(({ source }) => this.#loaded.has(source))
    this.#once(
      wasLoaded ? 'HOOKS_CHANGED' : 'HOOKS_NOT_TRUSTED',
      isTrusted ? changedText(paths) : untrustedText(paths),
    )
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
