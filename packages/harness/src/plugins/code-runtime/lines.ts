import { StringDecoder } from 'node:string_decoder'

/** Cuts bytes into lines, of which each is held until it is whole. */
export class Lines {
  readonly #onLine: (line: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #parts: string[] = []
  #held = 0

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  /** Characters of the line that is not whole yet. */
  get held(): number {
    return this.#held
  }

  push(bytes: Uint8Array): void {
    const [first = '', ...others] = this.#decoder.write(Buffer.from(bytes)).split('\n')
    this.#hold(first)
    for (const part of others) {
      this.#release()
      this.#hold(part)
    }
  }

  /** Gives what came without an end of line. */
  end(): void {
    this.#hold(this.#decoder.end())
    if (this.#held > 0) this.#release()
  }

  #hold(part: string): void {
    this.#parts.push(part)
    this.#held += part.length
  }

  #release(): void {
    const line = this.#parts.join('')
    this.#parts = []
    this.#held = 0
    this.#onLine(line)
  }
}
