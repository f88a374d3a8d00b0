import type { ReadableFile } from './file-system.ts'

const pieceBytes = 256 * 1024

/** A file's bytes, read piece by piece: only the piece that is looked at is in memory. */
export class FileWindow {
  readonly #file: ReadableFile
  #size: number
  #start = 0
  #bytes: Buffer = Buffer.alloc(0)

  /** `size` is where the file ended when it was looked at; what is added later is not seen. */
  constructor(file: ReadableFile, size: number) {
    this.#file = file
    this.#size = size
  }

  /** Where the file ends. */
  get size(): number {
    return this.#size
  }

  /** The bytes from `at` on, at least `least` of them, fewer only at the end. Valid until the next call. */
  from(at: number, least: number): Buffer | Promise<Buffer> {
    const end = this.#start + this.#bytes.length
    const wanted = Math.min(at + least, this.#size)
    if (at >= this.#start && wanted <= end) return this.#bytes.subarray(at - this.#start)
    return this.#load(at, wanted - at)
  }

  async #load(at: number, least: number): Promise<Buffer> {
    const offset = at - this.#start
    const kept = offset >= 0 && offset <= this.#bytes.length ? this.#bytes.subarray(offset) : Buffer.alloc(0)
    const end = Math.min(this.#size, at + Math.ceil(least / pieceBytes) * pieceBytes)
    const parts = [kept]
    let next = at + kept.length
    while (next < end) {
      const part = await this.#file.read(next, end - next)
      // Cut off meanwhile: it was the incomplete end of a write.
      if (part.length === 0) this.#size = next
      if (part.length === 0) break
      parts.push(part)
      next += part.length
    }
    this.#bytes = parts.length === 1 ? kept : Buffer.concat(parts)
    this.#start = at
    return this.#bytes
  }
}
