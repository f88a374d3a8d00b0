import type { InboxTarget, MessageId, SessionEvent, SessionHeader, UserMessage } from '@dsh/protocol'
import type { FoldDefinition, Session } from '../session/index.ts'
import { AgentError } from './errors.ts'

/** What waits for an agent, by where it goes. */
export interface InboxLists {
  readonly 'next-turn': readonly UserMessage[]
  readonly 'next-step': readonly UserMessage[]
}

/** The first event of a log that does not fit what waits by then: something before it is missing, or was changed. */
interface InboxMisfit {
  readonly seq: number
  readonly message: string
}

interface InboxState extends InboxLists {
  /** Events before this seq belong to the session this one was forked from. */
  readonly from: number
  readonly misfit?: InboxMisfit
}

type InboxEvent = 'agent/inbox/spliced' | 'user/message'

/**
 * The pending lists, from the log alone. A fork starts empty; a resumed session has what was left. Where the log does
 * not fit a list, nobody can tell what waits in it, so it is empty from there: nothing that was read is read twice.
 */
export const inboxFold: FoldDefinition<InboxState, InboxEvent> = {
  name: 'inbox',
  types: ['agent/inbox/spliced', 'user/message'],
  init: (header: SessionHeader) => ({ from: header.seedLength ?? 0, 'next-turn': [], 'next-step': [] }),
  apply(state: InboxState, event: SessionEvent<InboxEvent>) {
    if (event.seq < state.from) return state
    return event.type === 'user/message' ? read(state, event) : spliced(state, event)
  },
}

function spliced(state: InboxState, { seq, data }: SessionEvent<'agent/inbox/spliced'>): InboxState {
  const { target, start, removedCount = 0, inserted } = data
  const list = state[target]
  const end = start + removedCount
  if (end > list.length)
    return withoutList(state, target, {
      seq,
      message: `event ${seq} changes "${target}" up to message ${end}, and ${list.length} wait there`,
    })
  const next = list.toSpliced(start, removedCount, ...inserted)
  const other = state[target === 'next-turn' ? 'next-step' : 'next-turn']
  const twice = inserted.length === 0 ? undefined : firstTwice([...other, ...next])
  if (twice === undefined) return { ...state, [target]: next }
  return withoutList(state, target, {
    seq,
    message: `event ${seq} adds message "${twice}", which waits already`,
  })
}

/** A message is taken before it is read, so one that still waits then was taken by an event that is missing. */
function read(state: InboxState, { seq, data: { id } }: SessionEvent<'user/message'>): InboxState {
  const target = targets.find(each => state[each].some(message => message.id === id))
  if (target === undefined) return state
  return withoutList(state, target, {
    seq,
    message: `event ${seq} reads message "${id}", which still waits in "${target}"`,
  })
}

const targets: readonly InboxTarget[] = ['next-step', 'next-turn']

function withoutList(state: InboxState, target: InboxTarget, misfit: InboxMisfit): InboxState {
  return { ...state, [target]: [], misfit: state.misfit ?? misfit }
}

function firstTwice(messages: readonly UserMessage[]): MessageId | undefined {
  const ids = new Set<MessageId>()
  return messages.find(({ id }) => ids.size === ids.add(id).size)?.id
}

/** Told of each message after the splice that moved it is in the log. */
export interface InboxObserver {
  inserted(message: UserMessage): void
  /** Taken away unread. */
  discarded(message: UserMessage): void
  claimed(message: UserMessage, turn: number): void
}

interface Splice {
  readonly target: InboxTarget
  readonly start: number
  readonly count: number
  readonly inserted: readonly UserMessage[]
  readonly outcome?: 'canceled'
}

/**
 * What was said to an agent and not yet read: prompts, one per turn, and messages for the next step.
 *
 * Every change is one 'agent/inbox/spliced' event first; the lists are a fold of those. Where the log refuses an
 * event, the lists stay as they were. A message stands in the lists at most once.
 */
export class Inbox {
  readonly #session: Session
  readonly #observer: InboxObserver
  readonly #ids = new Set<MessageId>()

  constructor(session: Session, observer: InboxObserver) {
    this.#session = session
    this.#observer = observer
    for (const { id } of [...this.nextStep, ...this.nextTurn]) this.#ids.add(id)
  }

  get nextTurn(): readonly UserMessage[] {
    return this.#session.fold(inboxFold)['next-turn']
  }

  get nextStep(): readonly UserMessage[] {
    return this.#session.fold(inboxFold)['next-step']
  }

  get hasPending(): boolean {
    return this.#ids.size > 0
  }

  append(target: InboxTarget, ...messages: readonly UserMessage[]): void {
    this.splice(target, Infinity, 0, messages)
  }

  prepend(target: InboxTarget, ...messages: readonly UserMessage[]): void {
    this.splice(target, 0, 0, messages)
  }

  /** Puts `message` in the place of a pending one; false where that one is not pending any more. */
  replace(id: MessageId, message: UserMessage): boolean {
    const place = this.#find(id)
    if (place !== undefined) this.splice(place.target, place.start, 1, [message])
    return place !== undefined
  }

  /** False where the message is not pending any more. */
  remove(id: MessageId): boolean {
    const place = this.#find(id)
    if (place !== undefined) this.splice(place.target, place.start, 1, [])
    return place !== undefined
  }

  clear(): void {
    this.splice('next-step', 0, Infinity, [])
    this.splice('next-turn', 0, Infinity, [])
  }

  /** As on an array: any number is a position. Gives what was removed, which counts as cancelled. */
  splice(
    target: InboxTarget,
    start: number,
    count: number,
    inserted: readonly UserMessage[],
  ): readonly UserMessage[] {
    for (const message of inserted) assertUserMessage(message)
    const { length } = this.#list(target)
    const whole = toInteger(start)
    const from = whole < 0 ? Math.max(0, length + whole) : Math.min(whole, length)
    const removing = Math.min(Math.max(0, toInteger(count)), length - from)
    const outcome = removing > 0 ? ({ outcome: 'canceled' } as const) : {}
    const done = this.#commit({ target, start: from, count: removing, inserted, ...outcome })
    for (const message of done.removed) this.#observer.discarded(message)
    for (const message of done.inserted) this.#observer.inserted(message)
    return done.removed
  }

  /**
   * For the loop: takes all of next-step, then, for a new turn, one prompt. What is taken is the loop's to answer or
   * to give back.
   */
  claim(target: InboxTarget, turn: number): readonly UserMessage[] {
    const claimed = [...this.#take('next-step', Infinity)]
    if (target === 'next-turn') claimed.push(...this.#take('next-turn', 1))
    for (const message of claimed) this.#observer.claimed(message, turn)
    return claimed
  }

  #take(target: InboxTarget, most: number): readonly UserMessage[] {
    const count = Math.min(most, this.#list(target).length)
    return this.#commit({ target, start: 0, count, inserted: [] }).removed
  }

  #list(target: InboxTarget): readonly UserMessage[] {
    return target === 'next-step' ? this.nextStep : this.nextTurn
  }

  #find(id: MessageId): { readonly target: InboxTarget; readonly start: number } | undefined {
    if (!this.#ids.has(id)) return undefined
    const start = this.nextStep.findIndex(message => message.id === id)
    if (start >= 0) return { target: 'next-step', start }
    return { target: 'next-turn', start: this.nextTurn.findIndex(message => message.id === id) }
  }

  /** The ids move before the event is logged: an observer of the event may already splice again. */
  #commit(splice: Splice): { removed: readonly UserMessage[]; inserted: readonly UserMessage[] } {
    const { target, start, count, inserted, outcome } = splice
    if (count === 0 && inserted.length === 0) return { removed: [], inserted: [] }
    const removed = this.#list(target).slice(start, start + count)
    const added: MessageId[] = []
    for (const { id } of removed) this.#ids.delete(id)
    try {
      for (const { id } of inserted) {
        if (this.#ids.has(id)) throw duplicate(id)
        this.#ids.add(id)
        added.push(id)
      }
      const event = this.#session.append('agent/inbox/spliced', {
        target,
        start,
        ...(count === 0 ? {} : { removedCount: count }),
        inserted,
        ...(outcome === undefined ? {} : { outcome }),
      })
      return { removed, inserted: event.data.inserted }
    } catch (error) {
      for (const id of added) this.#ids.delete(id)
      for (const { id } of removed) this.#ids.add(id)
      throw error
    }
  }
}

function toInteger(value: number): number {
  return Number.isNaN(value) ? 0 : Math.trunc(value)
}

function duplicate(id: MessageId): AgentError {
  return new AgentError('DUPLICATE_MESSAGE', `message "${id}" is pending already`)
}

/** What is let in here is later logged as 'user/message', so it must be one. */
function assertUserMessage(message: UserMessage): void {
  const { id, role, content, source } = message
  if (typeof id !== 'string' || id === '') throw new TypeError('an inbox message needs a non-empty id')
  if (role !== 'user') throw new TypeError(`inbox message "${id}" has role "${role}" instead of "user"`)
  if (!Array.isArray(content)) throw new TypeError(`content of inbox message "${id}" is no list`)
  const kind = (source as { kind?: unknown } | undefined)?.kind
  if (typeof kind !== 'string' || kind === '')
    throw new TypeError(`source of inbox message "${id}" has no kind`)
}
