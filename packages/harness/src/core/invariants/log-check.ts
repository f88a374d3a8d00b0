import type { SessionEvent } from '@dsh/protocol'

/**
 * A rule about the order of events in a log. Its state is immutable, so that an event can be looked at before it is
 * written.
 */
export interface LogCheck<State = unknown> {
  /** Shown with each violation. */
  readonly name: string
  /** The state before the first event. */
  readonly start: State
  /** What is wrong with `event` at this point. Undefined = nothing. */
  problem(state: State, event: SessionEvent): string | undefined
  /** The state behind `event`, wrong or not; `state` itself where it changes nothing. */
  after(state: State, event: SessionEvent): State
}

export interface LogViolation {
  readonly check: string
  readonly seq: number
  readonly type: string
  readonly message: string
}

/** One check on its way through one log. */
export class LogReader {
  readonly #check: LogCheck
  #state: unknown
  #next = 0

  constructor(check: LogCheck) {
    this.#check = check
    this.#state = check.start
  }

  /** The seq of the event to read next. */
  get next(): number {
    return this.#next
  }

  read(event: SessionEvent): LogViolation | undefined {
    const violation = this.look(event)
    this.#state = this.#check.after(this.#state, event)
    this.#next = event.seq + 1
    return violation
  }

  /** What `read` would find, leaving everything as it is. */
  look(event: SessionEvent): LogViolation | undefined {
    const message = this.#check.problem(this.#state, event)
    if (message === undefined) return undefined
    return { check: this.#check.name, seq: event.seq, type: event.type, message }
  }
}
