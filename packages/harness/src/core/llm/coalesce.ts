import type { StreamChunk } from '@dsh/protocol'
import { isDelta } from './chunk.ts'
import type { Delta } from './chunk.ts'

/** One read of the source: a chunk, a failure, or neither at its end. */
interface Read {
  readonly chunk?: StreamChunk
  readonly failure?: { readonly error: unknown }
}

/**
 * Joins deltas of one block that follow each other within `windowMs`, so that a long answer is hundreds of chunks.
 *
 * A block's first delta passes at once and opens a window; what comes in it goes out as one when it ends, or before
 * any other chunk. `stop` is called when the consumer leaves in the middle of a read, to make that read end.
 */
export async function* coalesced(
  source: AsyncIterator<StreamChunk>,
  windowMs: number,
  stop: () => void,
): AsyncGenerator<StreamChunk, void> {
  const joiner = new Joiner(windowMs)
  let reading: Promise<Read> | undefined
  try {
    for (;;) {
      reading ??= readFrom(source)
      const read = await (joiner.holds ? Promise.race([reading, joiner.windowEnd]) : reading)
      if (read !== undefined) reading = undefined
      yield* read?.chunk === undefined ? joiner.flush() : joiner.take(read.chunk)
      if (read?.failure !== undefined) throw read.failure.error
      if (read !== undefined && read.chunk === undefined) return
    }
  } finally {
    joiner.close()
    if (reading !== undefined) stop()
    await reading
    await source.return?.()
  }
}

/** Never rejects, so that a read nobody waits for any more harms nobody. */
async function readFrom(source: AsyncIterator<StreamChunk>): Promise<Read> {
  try {
    const result = await source.next()
    return result.done === true ? {} : { chunk: result.value }
  } catch (error) {
    return { failure: { error } }
  }
}

class Joiner {
  readonly #windowMs: number
  #held: Delta | undefined
  /** The block whose deltas wait until the window ends. */
  #waiting: number | undefined
  #timer: NodeJS.Timeout | undefined
  #windowEnd: Promise<undefined> = Promise.resolve(undefined)

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  get holds(): boolean {
    return this.#held !== undefined
  }

  get windowEnd(): Promise<undefined> {
    return this.#windowEnd
  }

  /** Gives what goes out now. */
  take(chunk: StreamChunk): readonly StreamChunk[] {
    const joined = this.#held && join(this.#held, chunk)
    if (joined !== undefined) {
      this.#held = joined
      return []
    }
    const before = this.flush()
    if (!isDelta(chunk)) return [...before, chunk]
    if (chunk.index === this.#waiting) {
      this.#held = chunk
      return before
    }
    this.#openWindow(chunk.index)
    return [...before, chunk]
  }

  flush(): readonly StreamChunk[] {
    const held = this.#held
    if (held === undefined) return []
    this.#held = undefined
    this.#openWindow(held.index)
    return [Object.freeze(held)]
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #openWindow(index: number): void {
    clearTimeout(this.#timer)
    this.#waiting = index
    this.#windowEnd = new Promise(resolve => {
      this.#timer = setTimeout(() => {
        this.#waiting = undefined
        resolve(undefined)
      }, this.#windowMs)
    })
  }
}

/** Undefined where `next` does not continue `held`. */
function join(held: Delta, next: StreamChunk): Delta | undefined {
  if (!isDelta(next) || next.index !== held.index || next.type !== held.type) return undefined
  if (held.type !== 'tool-call-delta') return { ...held, text: held.text + (next as typeof held).text }
  const { id, name, argumentsDelta } = next as typeof held
  const joinedName = held.name ?? name
  return {
    ...held,
    id: held.id === '' ? id : held.id,
    ...(joinedName === undefined ? {} : { name: joinedName }),
    argumentsDelta: held.argumentsDelta + argumentsDelta,
  }
}
