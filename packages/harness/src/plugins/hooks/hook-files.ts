import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { projectParts } from '../trust/index.ts'
import type { TrustPart } from '../trust/index.ts'
import { parseHookFile } from './hook-file.ts'
import type { HookHandler } from './hook-file.ts'
import type { HookNoticeCode } from './notice.ts'
import type { HookSource } from './sources.ts'
import { changedText, untrustedText } from './text.ts'

/** Tells the person. */
export type TellNotice = (code: HookNoticeCode, message: string) => void

interface LoadedFile {
  /** Changes when the file does. */
  readonly stamp: string
  readonly handlers: readonly HookHandler[]
}

interface FoundFile {
  readonly source: HookSource
  readonly path: string
  readonly stamp: string
}

export interface HookFilesPlace {
  /** Of the session. */
  readonly folder: string | undefined
  readonly sources: readonly HookSource[]
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
  readonly #tell: TellNotice
  readonly #loaded = new Map<HookSource, LoadedFile>()
  /** What was said already, so that it is said once. */
  readonly #told = new Set<string>()

  constructor(ctx: Context, { folder, sources, tell }: HookFilesPlace) {
    this.#ctx = ctx
    this.#folder = folder
    this.#sources = sources
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
    if (path === undefined) {
      this.#once('HOOK_NOT_LOADED', `${label} is left out: a hook file is named from / or ~/`)
      return undefined
    }
    try {
      const { mtimeMs, size, ino } = await stat(path)
      return { source, path, stamp: `${ino}.${size}.${mtimeMs}` }
    } catch (error) {
      if (!isOfProject) this.#once('HOOK_NOT_LOADED', `${label} is left out: ${messageOf(error)}`)
      return undefined
    }
  }

  async #load({ source, path, stamp }: FoundFile, expected?: string): Promise<void> {
    const { label, dialect, env } = source
    const bytes = await readFile(path).catch((error: unknown) => messageOf(error))
    if (typeof bytes === 'string') this.#once('HOOK_NOT_LOADED', `${label} is left out: ${bytes}`)
    else if (bytes.length > largestBytes)
      this.#once('HOOK_NOT_LOADED', `${label} is left out: it is larger than ${largestBytes} bytes`)
    else if (expected !== undefined && createHash('sha256').update(bytes).digest('hex') !== expected)
      this.#once('HOOKS_CHANGED', changedText([label]))
    else {
      const { handlers, problems } = parseHookFile(bytes.toString('utf8'), { label, dialect, env })
      this.#loaded.set(source, { stamp, handlers })
      for (const problem of problems) this.#once('HOOK_NOT_LOADED', problem)
    }
  }

  /** A script beside a hook file that nobody admitted holds back the file too. */
  async #loadBrought(files: readonly FoundFile[]): Promise<void> {
    const folder = this.#folder ?? ''
    const { parts, refused } = projectParts(folder)
    const hooks = parts.filter(({ kind }) => kind === 'hooks')
    const trust = this.#ctx.get('trust')
    const waiting = (await trust?.pending(folder, hooks)) ?? hooks
    const isTrusted = (await trust?.stateOf(folder)) === 'trusted'
    const left: TrustPart[] = []
    for (const file of files) {
      const { label } = file.source
      const own = waiting.filter(({ path }) => folderOf(path) === folderOf(label))
      const part = hooks.find(({ path }) => path === label)
      if (refused.includes(label) || part === undefined)
        this.#once('HOOK_NOT_LOADED', `${label} is left out: it is a link, too large or cannot be read`)
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
