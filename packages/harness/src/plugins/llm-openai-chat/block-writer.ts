import type { CallId, StreamChunk } from '@dsh/protocol'

type SaidType = 'text' | 'reasoning'

interface Said {
  readonly type: SaidType
  readonly index: number
  text: string
  /** The first half of a character whose second half is still to come. */
  half: string
}

/**
 * Writes blocks as stream chunks: each started once, deltas joined with the one before where it is the same block's,
 * so that one read of the network gives one delta.
 */
export class BlockWriter {
  #out: StreamChunk[] = []
  #next = 0
  #said: Said | undefined

  get blockCount(): number {
    return this.#next
  }

  /** What was written since the last call. */
  take(): StreamChunk[] {
    const out = this.#out
    this.#out = []
    return out
  }

  /** Text or thinking; the other kind, or a tool call, ends the block. */
  say(type: SaidType, text: string): void {
    if (text === '') return
    if (this.#said?.type !== type) {
      this.endSaid()
      this.#said = { type, index: this.#next++, text: '', half: '' }
      this.push({ type: 'block-start', index: this.#said.index, blockType: type })
    }
    const said = this.#said
    const whole = said.half + text
    said.half = endsInHalf(whole) ? whole.slice(-1) : ''
    this.#delta(said, said.half === '' ? whole : whole.slice(0, -1))
  }

  endSaid(): void {
    const said = this.#said
    if (!said) return
    this.#said = undefined
    this.#delta(said, said.half)
    this.push({ type: 'block-end', index: said.index, block: { type: said.type, text: said.text } })
  }

  startCall(): number {
    this.endSaid()
    const index = this.#next++
    this.push({ type: 'block-start', index, blockType: 'tool-call' })
    return index
  }

  callDelta(index: number, delta: { id: CallId; name?: string; argumentsDelta: string }): void {
    const last = this.#out.at(-1)
    if (last?.type === 'tool-call-delta' && last.index === index) {
      const joined = { ...last, ...delta, argumentsDelta: last.argumentsDelta + delta.argumentsDelta }
      this.#out[this.#out.length - 1] = joined
    } else {
      this.push({ type: 'tool-call-delta', index, ...delta })
    }
  }

  push(chunk: StreamChunk): void {
    this.#out.push(chunk)
  }

  #delta(said: Said, given: string): void {
    const text = given.toWellFormed()
    if (text === '') return
    said.text += text
    const type = said.type === 'text' ? 'text-delta' : 'reasoning-delta'
    const last = this.#out.at(-1)
    if (last?.type === type && last.index === said.index) {
      this.#out[this.#out.length - 1] = { type, index: said.index, text: last.text + text }
    } else {
      this.push({ type, index: said.index, text })
    }
  }
}

/** Whether the rest of the last character comes with the next piece. */
export function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff
}
