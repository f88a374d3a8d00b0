import { cutText, utf8Length } from '../../core/tools/index.ts'
import type { LineRecord } from './records.ts'

export interface MatchLine {
  readonly number: number
  readonly text: string
  /** False for a line that stands around a match. */
  readonly isMatch: boolean
}

export interface FileMatches {
  readonly path: string
  readonly lines: readonly MatchLine[]
}

export interface MatchLimits {
  /** Matches that are passed over. */
  readonly offset: number
  readonly limit: number
  /** Lines of context before and after each match. */
  readonly context: number
  readonly maxLineBytes: number
  /** Of all lines together; one match is kept in any case. */
  readonly maxBytes: number
}

const carriageReturn = 13
const utf8 = new TextDecoder('utf-8', { fatal: true })
/** What is left of a line that is not UTF-8. */
const notUtf8 = '(not UTF-8)'

/** Keeps some of the matches that come, with the lines around them, and counts them all. */
export class MatchCollector {
  readonly #limits: MatchLimits
  readonly #files: { readonly path: string; readonly lines: MatchLine[] }[] = []
  /** Context that belongs to the next match, if that one is kept. */
  #before: MatchLine[] = []
  #after = 0
  #lastPath = ''
  #bytes = 0
  #isFull = false
  #matches = 0
  #kept = 0
  #fileCount = 0

  constructor(limits: MatchLimits) {
    this.#limits = limits
  }

  get files(): readonly FileMatches[] {
    return this.#files
  }

  /** All that came. */
  get matches(): number {
    return this.#matches
  }

  get fileCount(): number {
    return this.#fileCount
  }

  get kept(): number {
    return this.#kept
  }

  /** `path` is how the file is to be shown. True where lines of it are kept so far. */
  add(path: string, record: LineRecord): boolean {
    if (path !== this.#lastPath) {
      this.#lastPath = path
      this.#before = []
      this.#after = 0
      this.#fileCount++
    }
    if (record.isMatch) this.#addMatch(path, record)
    else if (!this.#isFull) this.#addContext(path, record)
    return this.#files.at(-1)?.path === path
  }

  #addMatch(path: string, record: LineRecord): void {
    const index = this.#matches++
    const { offset, limit, context } = this.#limits
    if (index < offset || this.#kept >= limit || this.#isFull) {
      this.#before = []
      this.#after = 0
      return
    }
    const lines = [...this.#before, this.#line(record)]
    this.#before = []
    const bytes = lines.reduce((sum, { text }) => sum + utf8Length(text) + 8, 0)
    this.#isFull = this.#kept > 0 && this.#bytes + bytes > this.#limits.maxBytes
    if (this.#isFull) return
    this.#keep(path, lines, bytes)
    this.#kept++
    this.#after = context
  }

  #addContext(path: string, record: LineRecord): void {
    const line = this.#line(record)
    if (this.#after > 0) {
      this.#after--
      this.#keep(path, [line], utf8Length(line.text) + 8)
      return
    }
    this.#before.push(line)
    if (this.#before.length > this.#limits.context) this.#before.shift()
  }

  #keep(path: string, lines: readonly MatchLine[], bytes: number): void {
    this.#bytes += bytes
    const file = this.#files.at(-1)
    if (file?.path === path) file.lines.push(...lines)
    else this.#files.push({ path, lines: [...lines] })
  }

  #line({ number, isMatch, line }: LineRecord): MatchLine {
    return { number, isMatch, text: lineText(line, this.#limits.maxLineBytes) }
  }
}

/** Without the CR of a CRLF. Behind what the search program itself cut stands a note, which this cuts off. */
export function lineText(bytes: Buffer, maxBytes: number): string {
  const length = bytes.length - (bytes.at(-1) === carriageReturn ? 1 : 0)
  try {
    return cutText(utf8.decode(bytes.subarray(0, length)), maxBytes)
  } catch {
    return notUtf8
  }
}
