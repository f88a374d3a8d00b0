import type { CallId } from '@dsh/protocol'

export interface ChainCall {
  readonly callId: CallId
  readonly name: string
  /** As it is shown. */
  readonly arguments: string
  readonly likeness: string
  /** Of the text of the result, once it is there; never where the guard itself made it. */
  result?: string
  failed?: boolean
}

/** What the last calls have in common. */
export interface Repetition {
  /** `call`: the same calls in the same order. `error`: other calls, but the same tool and the same error. */
  readonly kind: 'call' | 'error'
  readonly count: number
  /** One round of it. */
  readonly calls: readonly ChainCall[]
  /** Each round gave what the one before gave. */
  readonly isSame: boolean
}

const longestCycle = 4

/** The calls of one agent since a person last spoke. */
export class Chain {
  readonly #calls: ChainCall[] = []
  readonly #kept: number

  /** `most` is the highest count that is asked for. */
  constructor(most: number) {
    this.#kept = most * longestCycle
  }

  push(call: ChainCall): void {
    this.#calls.push(call)
    if (this.#calls.length > this.#kept) this.#calls.shift()
  }

  settle(callId: CallId, result: string, failed: boolean): void {
    const call = this.#calls.findLast(each => each.callId === callId)
    if (call !== undefined) Object.assign(call, { result, failed })
  }

  clear(): void {
    this.#calls.length = 0
  }

  /** The most frequent repetition that ends with the last call. */
  get repetition(): Repetition | undefined {
    const found: Repetition[] = []
    for (let length = 1; length <= longestCycle; length++) found.push(this.#cycle(length))
    found.push(this.#errors())
    const [most] = found.filter(({ count }) => count > 1).sort((a, b) => b.count - a.count)
    return most
  }

  #cycle(length: number): Repetition {
    const calls = this.#calls
    const round = calls.slice(-length)
    let same = 0
    let isSame = true
    for (let at = calls.length - 1 - length; at >= 0; at--) {
      const call = calls[at]
      const later = calls[at + length]
      if (call === undefined || later === undefined || call.likeness !== later.likeness) break
      const { result = later.result } = call
      if (later.result !== undefined && result !== later.result) isSame = false
      same++
    }
    const count = round.length < length ? 1 : 1 + Math.floor(same / length)
    return { kind: 'call', count, calls: round, isSame }
  }

  #errors(): Repetition {
    const calls = this.#calls.filter(({ result }) => result !== undefined)
    const last = calls.at(-1)
    if (last?.failed !== true) return { kind: 'error', count: 0, calls: [], isSame: true }
    const differs = calls.findLastIndex(({ name, result }) => name !== last.name || result !== last.result)
    return { kind: 'error', count: calls.length - 1 - differs, calls: [last], isSame: true }
  }
}
