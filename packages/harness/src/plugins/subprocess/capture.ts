import type { CapturedOutput, CapturedText, CaptureSpec } from './service.ts'

const firstRoom = 4096

/**
 * The two ends of a stream of bytes, in memory that grows with what came up to the two budgets, whatever the size of
 * the pieces.
 */
export class OutputCapture implements CapturedOutput {
  readonly #spec: CaptureSpec
  #head = Buffer.alloc(0)
  #headLength = 0
  #ring = Buffer.alloc(0)
  #total = 0
  #ended = false

  constructor(spec: CaptureSpec) {
    for (const bytes of [spec.headBytes, spec.tailBytes]) {
      if (!Number.isSafeInteger(bytes) || bytes < 0)
        throw new RangeError(`a capture of ${bytes} bytes is not possible`)
    }
    this.#spec = spec
  }

  get totalBytes(): number {
    return this.#total
  }

  push(bytes: Uint8Array): void {
    const room = Math.min(bytes.length, this.#spec.headBytes - this.#headLength)
    if (room > 0) this.#pushHead(bytes.subarray(0, room))
    if (room < bytes.length) this.#pushTail(bytes.subarray(room), this.#total + room - this.#headLength)
    this.#total += bytes.length
  }

  end(): void {
    this.#ended = true
  }

  ends(): { readonly head: Uint8Array; readonly tail: Uint8Array; readonly omittedBytes: number } {
    const behind = this.#total - this.#headLength
    const { length } = this.#ring
    const head = this.#head.subarray(0, this.#headLength)
    if (behind <= length) return { head, tail: this.#ring.subarray(0, behind), omittedBytes: 0 }
    const next = behind % (length || 1)
    const tail = Buffer.concat([this.#ring.subarray(next), this.#ring.subarray(0, next)])
    return { head, tail, omittedBytes: behind - length }
  }

  readFrom(byteOffset: number): CapturedText {
    const { head, tail, omittedBytes } = this.ends()
    const tailStart = head.length + omittedBytes
    const offset = Math.max(0, Math.min(byteOffset, this.#total))
    const isLost = omittedBytes > 0 && offset >= head.length && offset < tailStart
    const start = isLost ? tailStart : offset
    // Text is given up to the gap first, so that a reader learns of the gap where it is.
    const stopsAtGap = omittedBytes > 0 && start < head.length
    const bytes = stopsAtGap
      ? head.subarray(start)
      : Buffer.concat([head.subarray(start), tail.subarray(Math.max(0, start - tailStart))])
    const skipped = isLost ? continuationLength(bytes) : 0
    const kept = this.#ended && !stopsAtGap ? bytes.length : wholeLength(bytes)
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8', skipped, kept)
    // The torn character before a gap will not become whole: it is passed over with the gap.
    return { text, nextOffset: start + (stopsAtGap ? bytes.length : kept), lossy: isLost }
  }

  #pushHead(bytes: Uint8Array): void {
    const wanted = this.#headLength + bytes.length
    if (wanted > this.#head.length)
      this.#head = grown(this.#head, { wanted, used: this.#headLength, limit: this.#spec.headBytes })
    this.#head.set(bytes, this.#headLength)
    this.#headLength = wanted
  }

  /** `before` bytes came behind the head so far. */
  #pushTail(bytes: Uint8Array, before: number): void {
    const limit = this.#spec.tailBytes
    if (limit === 0) return
    const wanted = Math.min(before + bytes.length, limit)
    if (wanted > this.#ring.length)
      this.#ring = grown(this.#ring, { wanted, used: Math.min(before, this.#ring.length), limit })
    if (before + bytes.length <= this.#ring.length) {
      this.#ring.set(bytes, before)
      return
    }
    this.#wrap(bytes, before)
  }

  /** From here on the buffer is a full ring of `tailBytes`: the byte at position p behind the head is at p modulo that. */
  #wrap(bytes: Uint8Array, before: number): void {
    const { length } = this.#ring
    const skipped = Math.max(0, bytes.length - length)
    const last = bytes.subarray(skipped)
    const at = (before + skipped) % length
    const first = last.subarray(0, length - at)
    this.#ring.set(first, at)
    this.#ring.set(last.subarray(first.length), 0)
  }
}

function grown(
  buffer: Buffer<ArrayBuffer>,
  { wanted, used, limit }: { readonly wanted: number; readonly used: number; readonly limit: number },
): Buffer<ArrayBuffer> {
  const size = Math.min(limit, Math.max(wanted, buffer.length * 2, firstRoom))
  const larger = Buffer.allocUnsafeSlow(size)
  larger.set(buffer.subarray(0, used))
  return larger
}

/** How many bytes at the beginning belong to a character that began before. */
function continuationLength(bytes: Uint8Array): number {
  let length = 0
  while (length < 3 && ((bytes[length] ?? 0) & 0xc0) === 0x80) length++
  return length
}

/** The length without a character at the end that has not come whole. */
function wholeLength(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}
