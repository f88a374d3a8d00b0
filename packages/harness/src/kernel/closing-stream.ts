const done: IteratorResult<never, undefined> = Object.freeze({ done: true, value: undefined })

/**
 * A stream that tells, once, when it is over: when it ends, fails, or is closed. It is read once. Every chunk of an
 * answer passes here, so it is no generator: that would take twice the time.
 */
export class ClosingStream<T> implements AsyncIterableIterator<T, undefined> {
  readonly #stream: AsyncIterable<T>
  readonly #onOver: () => void
  #source: AsyncIterator<T> | undefined
  #isOver = false

  constructor(stream: AsyncIterable<T>, onOver: () => void) {
    this.#stream = stream
    this.#onOver = onOver
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#isOver) return Promise.resolve(done)
    try {
      this.#source ??= this.#stream[Symbol.asyncIterator]()
      const reading = Promise.resolve(this.#source.next())
      // Beside the reader, not between: this handler is the first, so it is told before the reader knows.
      reading.then(this.#look, this.#end)
      return reading
    } catch (error) {
      this.#end()
      return Promise.reject(error)
    }
  }

  /** Reaches the source at once, also while a read is under way. */
  async return(): Promise<IteratorResult<T, undefined>> {
    if (this.#isOver) return done
    try {
      await this.#source?.return?.()
    } finally {
      this.#end()
    }
    return done
  }

  readonly #look = (result: IteratorResult<T>): void => {
    if (result.done === true) this.#end()
  }

  readonly #end = (): void => {
    if (this.#isOver) return
    this.#isOver = true
    this.#onOver()
  }
}
