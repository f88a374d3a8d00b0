import { StringDecoder } from 'node:string_decoder'
import { InertStream } from './inert.ts'

const windowMs = 100
const windowBytes = 64 * 1024

/** Turns the bytes of one stream into inert text as they come; of a flood only the beginning of each tenth of a second. */
export class LiveText {
  readonly #tell: (text: string) => void
  readonly #now: () => number
  readonly #decoder = new StringDecoder('utf8')
  readonly #inert = new InertStream()
  #windowEnd = 0
  #room = 0
  #dropped = 0

  constructor(tell: (text: string) => void, now: () => number = () => performance.now()) {
    this.#tell = tell
    this.#now = now
  }

  push(bytes: Uint8Array): void {
    const now = this.#now()
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + windowMs
      this.#room = windowBytes
    }
    if (bytes.length > this.#room) {
      this.#dropped += bytes.length
      return
    }
    this.#room -= bytes.length
    this.#say(
      this.#inert.push(this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))),
    )
  }

  end(): void {
    this.#say(this.#inert.push(this.#decoder.end()) + this.#inert.end())
  }

  #say(text: string): void {
    const gap = this.#dropped === 0 ? '' : `\n[… ${this.#dropped} bytes are not shown …]\n`
    this.#dropped = 0
    if (gap + text !== '') this.#tell(gap + text)
  }
}
