import type { FinishReason, LlmFailure, StreamChunk } from '@dsh/protocol'
import { adoptChunk } from './chunk.ts'
import { llmError, toLlmFailure } from './failure.ts'

/** One dispatch of `llm/stream`; lets a chunk that was checked behind the listeners pass in front of them. */
export interface Passage {
  lastChecked: StreamChunk | undefined
}

export interface AdapterSide {
  /** Picks the adapter and starts its stream; a failure here is a failure of the request. */
  open(): Promise<AsyncIterator<StreamChunk>>
  readonly signal: AbortSignal | undefined
  readonly passage: Passage
  /** Told what went wrong after the answer was complete. */
  readonly report: (error: unknown) => void
}

type Read = IteratorResult<StreamChunk, void>

const done: Read = Object.freeze({ done: true, value: undefined })

/**
 * The adapter's answer up to its first finish chunk. However the adapter fails, that is one finish chunk of kind error
 * or aborted; only what it throws while it is closed early escapes. An object and not a generator: a chunk costs a
 * quarter.
 */
export class AdapterStream implements AsyncIterableIterator<StreamChunk, void> {
  readonly #side: AdapterSide
  #source: AsyncIterator<StreamChunk> | undefined
  #state: 'open' | 'finished' | 'closed' = 'open'

  constructor(side: AdapterSide) {
    this.#side = side
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<Read> {
    if (this.#state !== 'open') return await this.return()
    const { signal, passage } = this.#side
    let chunk: StreamChunk
    try {
      signal?.throwIfAborted()
      this.#source ??= await this.#side.open()
      const result = await this.#source.next()
      if (result.done === true) {
        signal?.throwIfAborted()
        return await this.return()
      }
      chunk = result.value
    } catch (error) {
      chunk = terminalChunk(error, signal)
    }
    if (chunk.type === 'finish') this.#state = 'finished'
    passage.lastChecked = chunk
    return { done: false, value: chunk }
  }

  async return(): Promise<Read> {
    const state = this.#state
    this.#state = 'closed'
    if (state === 'open') await this.#source?.return?.()
    if (state === 'finished') await this.#closeQuietly()
    return done
  }

  /** The answer is complete, so a failure in letting go of the adapter must not spoil it. */
  async #closeQuietly(): Promise<void> {
    try {
      await this.#source?.return?.()
    } catch (error) {
      this.#side.report(error)
    }
  }
}

function terminalChunk(error: unknown, signal: AbortSignal | undefined): StreamChunk {
  return Object.freeze({ type: 'finish', reason: terminalReason(error, signal) })
}

function terminalReason(error: unknown, signal: AbortSignal | undefined): FinishReason {
  const failure = toLlmFailure(error)
  if (signal?.aborted !== true && failure.code !== 'ABORTED') return Object.freeze({ kind: 'error', failure })
  const message = error === signal?.reason ? 'the request was aborted' : failure.message
  const aborted: LlmFailure = Object.freeze({ ...failure, message, code: 'ABORTED' })
  return Object.freeze({ kind: 'aborted', failure: aborted })
}

/** What listeners made of a stream: their own chunks are checked as an adapter's are, and a bad one is thrown. */
export class ListenerStream implements AsyncIterableIterator<StreamChunk, void> {
  readonly #stream: AsyncIterator<StreamChunk>
  readonly #passage: Passage

  constructor(stream: AsyncIterable<StreamChunk>, passage: Passage) {
    this.#stream = stream[Symbol.asyncIterator]()
    this.#passage = passage
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<Read> {
    const result = await this.#stream.next()
    if (result.done === true) return done
    if (result.value === this.#passage.lastChecked) return result
    try {
      return { done: false, value: adoptChunk(result.value) }
    } catch (error) {
      await this.return()
      throw error
    }
  }

  async return(): Promise<Read> {
    await this.#stream.return?.()
    return done
  }
}

/** Checks each chunk of an adapter as it is read. Closing is safe at any time and reaches the adapter at most once. */
export class ChunkReader implements AsyncIterator<StreamChunk, void> {
  readonly #source: AsyncIterator<unknown>
  #ended = false

  /** Throws INVALID_ADAPTER for what is no stream. */
  constructor(stream: AsyncIterable<unknown>) {
    if (typeof (stream as Partial<typeof stream> | undefined)?.[Symbol.asyncIterator] !== 'function')
      throw llmError('INVALID_ADAPTER', 'the adapter gave no stream of chunks')
    this.#source = stream[Symbol.asyncIterator]()
  }

  async next(): Promise<Read> {
    const reading = this.#source.next()
    this.#ended = true
    const result = await reading
    if (result.done === true) return done
    this.#ended = false
    return { done: false, value: adoptChunk(result.value) }
  }

  async return(): Promise<Read> {
    if (!this.#ended) {
      this.#ended = true
      await this.#source.return?.()
    }
    return done
  }
}
