/** What a publication tells of, and when an entry may leave. */
export interface PublicationHooks<Id, Value> {
  idOf(value: Value): Id
  /** A throw refuses the value; whoever entered it then takes it out again. */
  announce(value: Value): void
  /** The value is gone, whether it was announced or not. */
  left?(value: Value): void
  /** After that, told of a value that was announced. */
  disposed(value: Value): void
  /** Whether the value is in the middle of something, so that it may leave only after the next `settle`. */
  isBusy?(value: Value): boolean
  duplicate(id: Id): Error
}

interface Entry<Value> {
  readonly value: Value
  phase: 'silent' | 'announcing' | 'announced' | 'gone'
  /** Leaving was asked for while it could not be done. */
  isLeaving: boolean
}

/**
 * Values that become visible in two steps: they enter silently, are announced once, and leave. Whoever heard of one
 * hears of its end too.
 */
export class Publication<Id, Value> {
  readonly #hooks: PublicationHooks<Id, Value>
  readonly #entries = new Map<Id, Entry<Value>>()

  constructor(hooks: PublicationHooks<Id, Value>) {
    this.#hooks = hooks
  }

  get(id: Id): Value | undefined {
    return this.#entries.get(id)?.value
  }

  /** In the order they entered. */
  list(): Value[] {
    return [...this.#entries.values()].map(({ value }) => value)
  }

  isAnnounced(value: Value): boolean {
    const phase = this.#find(value)?.phase
    return phase === 'announcing' || phase === 'announced'
  }

  /** Makes the value findable. Gives what takes exactly this entry away, once. Throws where the id is taken. */
  enter(value: Value): () => void {
    const id = this.#hooks.idOf(value)
    if (this.#entries.has(id)) throw this.#hooks.duplicate(id)
    const entry: Entry<Value> = { value, phase: 'silent', isLeaving: false }
    this.#entries.set(id, entry)
    return () => this.#leave(entry)
  }

  /** Once for each entry, else a TypeError; what a listener throws escapes. */
  announce(value: Value): void {
    const entry = this.#find(value)
    if (entry === undefined) throw new TypeError(`${String(this.#hooks.idOf(value))} has not entered`)
    if (entry.phase !== 'silent')
      throw new TypeError(`${String(this.#hooks.idOf(value))} was announced before`)
    entry.phase = 'announcing'
    try {
      this.#hooks.announce(value)
    } finally {
      entry.phase = 'announced'
      if (entry.isLeaving) this.#leave(entry)
    }
  }

  /** Lets the value leave now, where that was asked for in the middle of something. */
  settle(value: Value): void {
    const entry = this.#find(value)
    if (entry?.isLeaving === true) this.#leave(entry)
  }

  /** The end of the publication itself: everything leaves, the last that entered first. */
  leaveAll(): void {
    for (const entry of [...this.#entries.values()].reverse()) this.#leave(entry)
  }

  #find(value: Value): Entry<Value> | undefined {
    const entry = this.#entries.get(this.#hooks.idOf(value))
    return entry?.value === value ? entry : undefined
  }

  #leave(entry: Entry<Value>): void {
    const { value, phase } = entry
    if (phase === 'gone') return
    if (phase === 'announcing' || this.#hooks.isBusy?.(value) === true) {
      entry.isLeaving = true
      return
    }
    entry.phase = 'gone'
    this.#entries.delete(this.#hooks.idOf(value))
    this.#hooks.left?.(value)
    if (phase === 'announced') this.#hooks.disposed(value)
  }
}
