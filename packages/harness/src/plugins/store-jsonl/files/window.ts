import type { ReadableFile } from './file-system.ts'

const pieceBytes = 256 * 1024

/** A file's bytes, read piece by piece: only the piece that is looked at is in memory. */
export class FileWindow {
  readonly #file: ReadableFile
  #size: number
  #start = 0
  #bytes: Buffer = Buffer.alloc(0)
  /** What `#bytes` is the beginning of; used again, since a long log would leave its whole size to the collector. */
  #memory: Buffer = Buffer.alloc(0)

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
    const memory = end - at > this.#memory.length ? Buffer.allocUnsafe(end - at) : this.#memory
    // Where it is the same memory, the bytes only move towards its beginning.
    memory.set(kept)
    let length = kept.length
    // A failed read leaves nothing that is believed.
    this.#bytes = memory.subarray(0, 0)
    this.#memory = memory
    while (at + length < end) {
      const part = await this.#file.read(at + length, end - at - length, memory.subarray(length))
      // Cut off meanwhile: it was the incomplete end of a write.
      if (part.length === 0) this.#size = at + length
      if (part.length === 0) break
      memory.set(part, length)
      length += part.length
    }
    this.#bytes = memory.subarray(0, length)
    this.#start = at
    return this.#bytes
  }
}
