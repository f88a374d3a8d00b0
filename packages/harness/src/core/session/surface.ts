import { surfaceEventTypes } from '@dsh/protocol'
import type { Message, SessionEvent, SurfaceEventType, SurfaceOp } from '@dsh/protocol'
import { isFields, jsonEquals } from '../../kernel/index.ts'
import { SessionError } from './errors.ts'
import { includesSeq, isRange, problemOfSources } from './sources.ts'
import type { Sources } from './sources.ts'

export type SurfaceEvent = SessionEvent<SurfaceEventType>

/** The model's view of a log, as seqs of events, and how often parts of it were replaced. */
export interface SessionSurface {
  readonly nodes: readonly number[]
  readonly replaceGeneration: number
}

export interface SurfaceReplacement {
  readonly seq: number
  readonly start: number
  readonly end: number
  readonly shadowedSeqs: readonly number[]
}

export interface SurfaceFoldResult {
  readonly nodes: readonly number[]
  readonly replacements: readonly SurfaceReplacement[]
}

const surfaceTypes: ReadonlySet<string> = new Set(surfaceEventTypes)

export function isSurfaceType(type: string): type is SurfaceEventType {
  return surfaceTypes.has(type)
}

export function isSurfaceEvent(event: SessionEvent): event is SurfaceEvent {
  return surfaceTypes.has(event.type)
}

/** What a person's transcript shows: replacements hide history from the model alone. */
export function isAppendSurfaceEvent(event: SessionEvent): event is SurfaceEvent {
  return event.surfaceOp === 'append' && isSurfaceEvent(event)
}

export function isReplacementSurfaceEvent(event: SessionEvent): event is SurfaceEvent {
  return event.surfaceOp !== undefined && event.surfaceOp !== 'append' && isSurfaceEvent(event)
}

/** The message an event puts before the model: its own, unchanged. Null where it puts none. */
export function deriveEventMessage(event: SessionEvent): Message | null {
  switch (event.type) {
    case 'user/message':
      return event.data
    case 'assistant/message':
      return event.data.message.content.length === 0 ? null : event.data.message
    case 'tool/result':
      return event.data.message
    default:
      return null
  }
}

/** Where an event goes: `count` nodes from `index` on make room for it. At the end where undefined. */
export interface Span {
  readonly index: number
  readonly count: number
}

/**
 * The surface of a log or of a window of it, one event after the other.
 *
 * `plan` checks and changes nothing; `commit` takes the checked event in.
 */
export class SurfaceManager {
  readonly surface: SessionSurface
  readonly #seqs: number[] = []
  readonly #events: SurfaceEvent[] = []
  readonly #messages: (Message | null)[] = []
  /** Nodes without a message. */
  #silent = 0
  #generation = 0
  #next: number
  #nodes: readonly number[] | undefined
  #view: readonly Message[] | undefined

  /** Folds `log`, whose first event has the seq `baseSeq`. Throws INVALID_EVENT for a gap or a bad place. */
  constructor(log: Iterable<SessionEvent> = [], baseSeq = 0) {
    const nodes = (): readonly number[] => (this.#nodes ??= Object.freeze(this.#seqs.slice()))
    const generation = (): number => this.#generation
    this.surface = Object.freeze({
      get nodes() {
        return nodes()
      },
      get replaceGeneration() {
        return generation()
      },
    })
    this.#next = baseSeq
    for (const event of log) this.append(event)
  }

  /** Takes in the event after the last one, of whatever type. */
  append(event: SessionEvent): void {
    if (event.seq !== this.#next) throw invalid(event, `it follows event ${this.#next - 1}`)
    this.#next++
    if (!isSurfaceEvent(event)) {
      const { surfaceOp, sourceEventSeqs } = event as SessionEvent
      if (surfaceOp === undefined && sourceEventSeqs === undefined) return
      throw invalid(event, 'its type is not on the surface')
    }
    const { sourceEventSeqs } = event
    const problem = sourceEventSeqs && problemOfSources(sourceEventSeqs, event.seq)
    if (problem !== undefined) throw invalid(event, problem)
    this.commit(event, this.plan(event, sourceEventSeqs))
  }

  /** Where a surface event goes. Throws INVALID_EVENT, saying why, where it may not go there. */
  plan(event: SurfaceEvent, sources: Sources | undefined): Span | undefined {
    try {
      if (sources !== undefined && isEmpty(sources) && event.type !== 'assistant/message') {
        throw new TypeError('sourceEventSeqs is empty, which only an "assistant/message" may say')
      }
      const span = this.spanOf(readOp(event.surfaceOp))
      if (span !== undefined) this.#assertReplaceable(event, span, sources)
      return span
    } catch (error) {
      throw error instanceof TypeError ? invalid(event, error.message) : error
    }
  }

  /** The nodes that `op` replaces; undefined where it goes to the end. Throws a TypeError where they are none. */
  spanOf(op: SurfaceOp): Span | undefined {
    if (op === 'append') return undefined
    const { start, end } = op
    const first = this.#seqs.indexOf(start)
    const last = start === end ? first : this.#seqs.indexOf(end)
    if (first < 0) throw new TypeError(`${start} is not on the surface`)
    if (last < 0) throw new TypeError(`${end} is not on the surface`)
    if (first > last) throw new TypeError(`${start} comes after ${end} on the surface`)
    return { index: first, count: last - first + 1 }
  }

  commit(event: SurfaceEvent, span: Span | undefined): void {
    const message = deriveEventMessage(event)
    if (message === null) this.#silent++
    this.#nodes = undefined
    this.#view = undefined
    if (span === undefined) {
      this.#seqs.push(event.seq)
      this.#events.push(event)
      this.#messages.push(message)
      return
    }
    const { index, count } = span
    this.#seqs.splice(index, count, event.seq)
    this.#events.splice(index, count, event)
    for (const gone of this.#messages.splice(index, count, message)) if (gone === null) this.#silent--
    this.#generation++
  }

  /** What the model sees; frozen, and the same list until the surface changes. */
  get messages(): readonly Message[] {
    return (this.#view ??= Object.freeze(this.derive()))
  }

  derive(): Message[] {
    if (this.#silent === 0) return this.#messages.slice() as Message[]
    return this.#messages.filter(message => message !== null)
  }

  #assertReplaceable(event: SurfaceEvent, span: Span, sources: Sources | undefined): void {
    for (const seq of this.#seqs.slice(span.index, span.index + span.count)) {
      if (sources === undefined || !includesSeq(sources, seq)) {
        throw new TypeError(`sourceEventSeqs leaves out ${seq}, which is replaced`)
      }
    }
    if (event.type === 'tool/result') this.#assertSameResult(event, span)
  }

  /** A result may be shortened, not become another one. */
  #assertSameResult(event: SessionEvent<'tool/result'>, { index, count }: Span): void {
    const old = this.#events[index]
    if (count !== 1 || old?.type !== 'tool/result') {
      throw new TypeError('a "tool/result" replaces exactly one other "tool/result"')
    }
    if (!jsonEquals(withoutContent(event), withoutContent(old))) {
      throw new TypeError('a "tool/result" that replaces another differs in more than its content')
    }
  }
}

/** The surface of a whole log, with what each replacement hid. */
export function foldSurface(events: readonly SessionEvent[]): SurfaceFoldResult {
  const replacements: SurfaceReplacement[] = []
  const manager = new SurfaceManager()
  for (const event of events) {
    const before = event.surfaceOp === undefined || event.surfaceOp === 'append' ? [] : manager.surface.nodes
    manager.append(event)
    const { seq, surfaceOp } = event
    if (surfaceOp === undefined || surfaceOp === 'append') continue
    const { start, end } = surfaceOp
    const shadowedSeqs = before.slice(before.indexOf(start), before.indexOf(end) + 1)
    replacements.push({ seq, start, end, shadowedSeqs })
  }
  return { nodes: manager.surface.nodes, replacements }
}

/** One read of each key, and no key but the three. */
export function readOp(given: unknown): SurfaceOp {
  if (given === 'append') return given
  if (given === undefined) throw new TypeError('surfaceOp is missing')
  if (isFields(given) && Reflect.ownKeys(given).length === 3) {
    const { op, start, end } = given
    if (op === 'replace' && Number.isSafeInteger(start) && Number.isSafeInteger(end)) {
      return Object.freeze({ op, start: (start as number) + 0, end: (end as number) + 0 })
    }
  }
  throw new TypeError('surfaceOp is neither "append" nor {op: "replace", start, end}')
}

function isEmpty(sources: Sources): boolean {
  return !isRange(sources) && sources.length === 0
}

function invalid({ seq, type }: SessionEvent, problem: string): SessionError {
  return new SessionError('INVALID_EVENT', `event ${seq} ("${type}"): ${problem}`, { seq })
}

function withoutContent({ data }: SessionEvent<'tool/result'>): unknown {
  const { message, ...rest } = data
  const [block] = message.content
  return { ...rest, message: { ...message, content: [{ ...block, content: [] }] } }
}
