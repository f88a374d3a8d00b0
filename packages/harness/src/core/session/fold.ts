import type { SessionEvent, SessionEventType, SessionHeader } from '@dsh/protocol'

/**
 * A value that follows from the log alone.
 *
 * `apply` is pure: it returns a new state, or `state` itself where nothing changed. It sees the events of `types` only,
 * in order. What it throws is thrown again by whoever reads the fold.
 */
export interface FoldDefinition<State, Type extends SessionEventType = SessionEventType> {
  /** For messages; the definition itself is the key. */
  readonly name: string
  readonly types: readonly Type[]
  init(header: SessionHeader): State
  apply(state: State, event: SessionEvent<Type>): State
}

export type AnyFold = FoldDefinition<unknown, never>

const keptStates = 16

/** One fold of one session, up to date after every event. The last states are kept for those who ask for an earlier one. */
export class LiveFold {
  readonly definition: AnyFold
  readonly #seqs: number[] = []
  readonly #states: unknown[] = []
  #failure: { readonly seq: number; readonly error: unknown } | undefined

  constructor(definition: AnyFold, header: SessionHeader) {
    this.definition = definition
    this.#seqs.push(-1)
    this.#states.push(definition.init(header))
  }

  apply(event: SessionEvent): void {
    if (this.#failure !== undefined) return
    const state = this.#states.at(-1)
    try {
      const next = this.definition.apply(state, event as never)
      if (next !== state) this.#keep(event.seq, next)
    } catch (error) {
      this.#failure = { seq: event.seq, error }
    }
  }

  get value(): unknown {
    if (this.#failure !== undefined) throw this.#failure.error
    return this.#states.at(-1)
  }

  /** The state from the events before `seq`, or undefined where it is no longer kept. */
  before(seq: number): { readonly state: unknown } | undefined {
    if (this.#failure !== undefined && this.#failure.seq < seq) throw this.#failure.error
    for (let index = this.#seqs.length - 1; index >= 0; index--) {
      if ((this.#seqs[index] ?? 0) < seq) return { state: this.#states[index] }
    }
    return undefined
  }

  #keep(seq: number, state: unknown): void {
    this.#seqs.push(seq)
    this.#states.push(state)
    if (this.#seqs.length <= keptStates) return
    this.#seqs.shift()
    this.#states.shift()
  }
}
