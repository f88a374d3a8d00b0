import { HarnessError } from '../../kernel/index.ts'

/** Values under unique names. */
export class NamedEntries<T> {
  readonly #noun: string
  readonly #entries = new Map<string, { readonly value: T }>()

  /** `noun` names the kind in errors. */
  constructor(noun: string) {
    this.#noun = noun
  }

  get size(): number {
    return this.#entries.size
  }

  /** Gives what takes exactly this entry away, once. Throws DUPLICATE_NAME where the name is taken. */
  add(name: string, value: T): () => void {
    if (this.#entries.has(name)) {
      throw new HarnessError('DUPLICATE_NAME', `${this.#noun} "${name}" is already registered here`)
    }
    const entry = { value }
    this.#entries.set(name, entry)
    return () => {
      if (this.#entries.get(name) === entry) this.#entries.delete(name)
    }
  }

  get(name: string): T | undefined {
    return this.#entries.get(name)?.value
  }

  has(name: string): boolean {
    return this.#entries.has(name)
  }

  /** Live, in order of registration. */
  *[Symbol.iterator](): IterableIterator<[name: string, value: T]> {
    for (const [name, { value }] of this.#entries) yield [name, value]
  }
}

/** Values without names; equal ones are kept apart. */
export class AnonymousEntries<T> {
  readonly #entries = new Set<{ readonly value: T }>()

  get size(): number {
    return this.#entries.size
  }

  /** Gives what takes exactly this entry away, once. */
  add(value: T): () => void {
    const entry = { value }
    this.#entries.add(entry)
    return () => {
      this.#entries.delete(entry)
    }
  }

  /** Live, in order of registration. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (const { value } of this.#entries) yield value
  }
}
