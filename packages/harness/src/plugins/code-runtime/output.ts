import { utf8Length } from '../../core/tools/index.ts'

/** What a program may print and return together, in bytes of JSON. */
export class OutputBudget {
  readonly logs: string[] = []
  readonly #maxBytes: number
  /** The brackets of the list of logs. */
  #usedBytes = 2
  #isFull = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether something did not fit: from then on nothing is kept. */
  get isFull(): boolean {
    return this.#isFull
  }

  log(text: string): void {
    const bytes = utf8Length(JSON.stringify(text)) + (this.logs.length === 0 ? 0 : 1)
    if (!this.#take(bytes)) return
    this.logs.push(text)
  }

  /** Whether the value or the message of an error, as JSON, fits behind the logs. */
  takes(json: string): boolean {
    return this.#take(utf8Length(json))
  }

  #take(bytes: number): boolean {
    if (this.#isFull || this.#usedBytes + bytes > this.#maxBytes) this.#isFull = true
    else this.#usedBytes += bytes
    return !this.#isFull
  }
}
