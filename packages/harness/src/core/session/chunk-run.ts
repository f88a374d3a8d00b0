import type { SessionEvent } from '@dsh/protocol'
import type { Delta } from '../llm/index.ts'
import { isSameBlock } from './chunk-row.ts'

const capacity = 64
const largestGap = 0x3fff_ffff

/**
 * Consecutive deltas of one block, kept as one text with marks.
 *
 * Chunks outnumber all other events, and nobody reads most of them again: an event of a run is made anew for each
 * reader, and the log's memory grows with the text alone.
 */
export class ChunkRun {
  readonly #firstSeq: number
  readonly #turn: number
  readonly #step: number
  readonly #delta: Delta
  readonly #texts: string[] = []
  /** For each member the end of its text, and its time after the first. */
  readonly #marks: number[] = []
  readonly #time: number
  #length = 0
  #joined: string | undefined
  #packed: Int32Array | undefined

  constructor(event: SessionEvent<'assistant/chunk'>, delta: Delta) {
    this.#firstSeq = event.seq
    this.#time = event.time
    this.#turn = event.data.turn
    this.#step = event.data.step
    this.#delta = delta
    this.#add(textOf(delta), 0)
  }

  /** Takes the event in, or says that it belongs to another run. */
  push(event: SessionEvent<'assistant/chunk'>, delta: Delta): boolean {
    const { turn, step } = event.data
    const gap = event.time - this.#time
    if (this.#joined !== undefined || turn !== this.#turn || step !== this.#step) return false
    if (gap > largestGap || gap < -largestGap || !isSameBlock(delta, this.#delta)) return false
    this.#add(textOf(delta), gap)
    return true
  }

  #add(text: string, gap: number): void {
    this.#length += text.length
    this.#texts.push(text)
    this.#marks.push(this.#length, gap)
    if (this.#texts.length === capacity) this.seal()
  }

  /** Nothing is added any more; the texts become one. */
  seal(): void {
    if (this.#joined !== undefined) return
    this.#joined = this.#texts.join('')
    this.#packed = Int32Array.from(this.#marks)
    this.#texts.length = 0
    this.#marks.length = 0
  }

  at(seq: number): SessionEvent<'assistant/chunk'> {
    const index = seq - this.#firstSeq
    const marks = this.#packed ?? this.#marks
    const start = index === 0 ? 0 : (marks[index * 2 - 2] ?? 0)
    const text = this.#joined?.slice(start, marks[index * 2]) ?? this.#texts[index] ?? ''
    const time = this.#time + (marks[index * 2 + 1] ?? 0)
    const data = Object.freeze({ turn: this.#turn, step: this.#step, chunk: withText(this.#delta, text) })
    return Object.freeze({ type: 'assistant/chunk', seq, time, data })
  }
}

function textOf(delta: Delta): string {
  return delta.type === 'tool-call-delta' ? delta.argumentsDelta : delta.text
}

function withText(delta: Delta, text: string): Delta {
  const { type, index } = delta
  if (type !== 'tool-call-delta') return Object.freeze({ type, index, text })
  const { id, name } = delta
  if (name === undefined) return Object.freeze({ type, index, id, argumentsDelta: text })
  return Object.freeze({ type, index, id, name, argumentsDelta: text })
}
