import type { KeptText } from './text.ts'

/** Keeps the first items and counts the rest. */
export class ItemRetainer<T> {
  readonly #maxItems: number
  readonly #kept: T[] = []
  #seen = 0

  constructor(budget: { readonly maxItems: number }) {
    const { maxItems } = budget
    if (!Number.isSafeInteger(maxItems) || maxItems < 0) {
      throw new RangeError(`maxItems is ${maxItems}, not a whole number of 0 or more`)
    }
    this.#maxItems = maxItems
  }

  get kept(): readonly T[] {
    return this.#kept
  }

  get seen(): number {
    return this.#seen
  }

  /** What is missing behind `kept`. */
  get omitted(): Omitted {
    return { kind: 'exact', count: this.#seen - this.#kept.length }
  }

  push(item: T): void {
    this.#seen++
    if (this.#kept.length < this.#maxItems) this.#kept.push(item)
  }
}

/** How much is missing, as far as that is known. */
export type Omitted =
  | { readonly kind: 'none' }
  | { readonly kind: 'exact'; readonly count: number }
  | { readonly kind: 'unknown' }

/** `1 line omitted`, `3 lines omitted`, `more lines omitted`, or nothing. `unit` is a singular. */
export function describeOmitted(omitted: Omitted, unit: string): string {
  if (omitted.kind === 'unknown') return `more ${unit}s omitted`
  if (omitted.kind === 'none' || omitted.count === 0) return ''
  return omitted.count === 1 ? `1 ${unit} omitted` : `${omitted.count} ${unit}s omitted`
}

/** Both ends of a text with a word of what is missing between them; `artifact` is the hash that all of it is kept under. */
export function joinEnds({ head, tail, omittedBytes }: KeptText, artifact: string | undefined): string {
  return omittedBytes === 0 ? head : head + leftOutMark(omittedBytes, artifact) + tail
}

/** Stands between the ends of a text, on a line of its own. */
export function leftOutMark(omittedBytes: number, artifact: string | undefined): string {
  const where = artifact === undefined ? '' : `; read artifact:${artifact} for more`
  return `\n[… ${omittedBytes} bytes left out${where} …]\n`
}
