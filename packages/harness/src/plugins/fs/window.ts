import { cutText, utf8Length } from '../../core/tools/index.ts'

export interface WindowLimits {
  /** The first line that is kept, from 1. */
  readonly offset: number
  /** How many lines are kept at most. */
  readonly limit: number
  /** In UTF-16 units; a longer line is cut, and says so. */
  readonly maxLineLength: number
  /** Of all kept lines together; one line is kept in any case. */
  readonly maxBytes: number
}

export interface WindowLine {
  readonly number: number
  readonly text: string
}

export interface TextWindow {
  readonly lines: readonly WindowLine[]
  /** All lines of the text; a line end at its end begins no further one. */
  readonly totalLines: number
  /** Lines within the limit are left out, because of `maxBytes`. */
  readonly isCapped: boolean
}

const lineEnd = /\r\n|\n|\r/g

/** Keeps some lines of a text that comes in pieces, and counts them all. Holds no more of a line than is kept. */
export class WindowReader {
  readonly #limits: WindowLimits
  readonly #lines: WindowLine[] = []
  #line = ''
  /** Something of the line that is read now has come. */
  #isOpen = false
  #count = 0
  #bytes = 0
  #isCapped = false
  /** A CR at the end of a piece may be half of a CRLF. */
  #held = ''

  constructor(limits: WindowLimits) {
    this.#limits = limits
  }

  push(piece: string): void {
    const joined = this.#held + piece
    this.#held = joined.endsWith('\r') ? '\r' : ''
    const end = joined.length - this.#held.length
    let from = 0
    for (const { index, 0: mark } of joined.matchAll(lineEnd)) {
      if (index >= end) break
      this.#take(joined, from, index)
      this.#endLine()
      from = index + mark.length
    }
    this.#take(joined, from, end)
  }

  end(): TextWindow {
    if (this.#held !== '' || this.#isOpen) this.#endLine()
    return { lines: this.#lines, totalLines: this.#count, isCapped: this.#isCapped }
  }

  get #isWanted(): boolean {
    const { offset, limit } = this.#limits
    return this.#count + 1 >= offset && this.#lines.length < limit && !this.#isCapped
  }

  #take(text: string, from: number, to: number): void {
    if (to <= from) return
    this.#isOpen = true
    const room = this.#limits.maxLineLength + 1 - this.#line.length
    if (room > 0 && this.#isWanted) this.#line += text.slice(from, Math.min(to, from + room))
  }

  #endLine(): void {
    if (this.#isWanted) this.#keep(this.#shown())
    this.#count++
    this.#line = ''
    this.#isOpen = false
  }

  #keep(text: string): void {
    const bytes = utf8Length(text) + 1
    this.#isCapped = this.#lines.length > 0 && this.#bytes + bytes > this.#limits.maxBytes
    if (this.#isCapped) return
    this.#bytes += bytes
    this.#lines.push({ number: this.#count + 1, text: cutText(text, this.#limits.maxBytes) })
  }

  #shown(): string {
    const { maxLineLength } = this.#limits
    if (this.#line.length <= maxLineLength) return this.#line
    // Half a pair at the cut counts three bytes, too few for the whole of it.
    const maxBytes = utf8Length(this.#line.slice(0, maxLineLength))
    return `${cutText(this.#line, maxBytes, { mark: '' })}... (line truncated to ${maxLineLength} chars)`
  }
}
