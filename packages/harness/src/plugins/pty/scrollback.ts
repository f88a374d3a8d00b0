import { utf8Length } from '../../core/tools/index.ts'
import { InertStream, inertText } from '../bash/index.ts'
import type { PtyPage } from './service.ts'

export interface ScrollbackLimits {
  readonly lines: number
  readonly bytes: number
}

/** A line without an end is broken where it is longer, in UTF-16 code units. */
const longestLine = 16 * 1024

/** The last lines that a terminal showed, as a person would have read them. Lines are numbered from 1 and keep their numbers. */
export class Scrollback {
  readonly #limits: ScrollbackLimits
  readonly #inert = new InertStream()
  #lines: { readonly text: string; readonly bytes: number }[] = []
  /** How many of `#lines`, at the beginning, are dropped already. */
  #dropped = 0
  #bytes = 0
  #first = 1
  #open = ''

  constructor(limits: ScrollbackLimits) {
    this.#limits = limits
  }

  append(text: string): void {
    this.#add(this.#inert.push(text))
  }

  end(): void {
    this.#add(this.#inert.end())
  }

  page({ offset, count }: { readonly offset: number; readonly count: number }): PtyPage {
    const kept = this.#lines.slice(this.#dropped).map(line => line.text)
    const open = inertText(this.#open)
    const lines = open === '' ? kept : [...kept, open]
    const end = Math.max(0, lines.length - offset)
    const begin = Math.max(0, end - count)
    return {
      lines: lines.slice(begin, end),
      first: this.#first + begin,
      total: this.#first + lines.length - 1,
      oldest: this.#first,
    }
  }

  #add(text: string): void {
    const parts = (this.#open + text).split('\n')
    this.#open = parts.pop() ?? ''
    for (const part of parts) this.#push(part)
    while (this.#open.length > longestLine) {
      const isTorn = this.#open.charCodeAt(longestLine - 1) >> 10 === 0xd800 >> 10
      const end = isTorn ? longestLine - 1 : longestLine
      this.#push(this.#open.slice(0, end))
      this.#open = this.#open.slice(end)
    }
  }

  #push(raw: string): void {
    const text = inertText(raw).toWellFormed()
    const bytes = utf8Length(text) + 1
    this.#lines.push({ text, bytes })
    this.#bytes += bytes
    while (this.#lines.length - this.#dropped > this.#limits.lines || this.#bytes > this.#limits.bytes) {
      this.#bytes -= this.#lines[this.#dropped]?.bytes ?? 0
      this.#dropped++
      this.#first++
    }
    // Moving all lines at each drop would take its time with every line.
    if (this.#dropped > this.#limits.lines) this.#compact()
  }

  #compact(): void {
    this.#lines = this.#lines.slice(this.#dropped)
    this.#dropped = 0
  }
}
