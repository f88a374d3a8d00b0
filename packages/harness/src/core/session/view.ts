import type {
  EpochHeader,
  Message,
  RequestContext,
  SessionEvent,
  SessionEventType,
  SessionHeader,
  SessionId,
  StreamChunk,
} from '@dsh/protocol'
import type { Entries } from './entries.ts'
import { LiveFold } from './fold.ts'
import type { AnyFold, FoldDefinition } from './fold.ts'
import { requestContext, requestHeader } from './request.ts'
import type { FlaggedEvent } from './seed.ts'
import { attemptBefore, mergeDeltas } from './stream.ts'
import { deriveEventMessage } from './surface.ts'
import type { SessionSurface, SurfaceManager } from './surface.ts'

export interface SessionParts {
  readonly header: SessionHeader
  readonly entries: Entries
  readonly surface: SurfaceManager
  readonly flagged: readonly FlaggedEvent[]
}

/** The reading half of a session. Nothing here scans the log, but for `events` and a fold that is asked for the first time. */
export abstract class SessionView {
  readonly header: SessionHeader
  /** The first seq that this life of the session wrote, or will write; 0 without a seed. */
  readonly firstLiveSeq: number
  /** Events of the seed whose data the plugin they belong to refuses; no fold sees them. */
  readonly flagged: readonly FlaggedEvent[]
  protected readonly entries: Entries
  protected readonly manager: SurfaceManager
  readonly #folds = new Map<AnyFold, LiveFold>()

  protected constructor({ header, entries, surface, flagged }: SessionParts) {
    this.header = header
    this.firstLiveSeq = entries.length
    this.flagged = flagged
    this.entries = entries
    this.manager = surface
  }

  get id(): SessionId {
    return this.header.id
  }

  get length(): number {
    return this.entries.length
  }

  /** The seq of the next event. */
  get seq(): number {
    return this.entries.length
  }

  /** The whole log as a frozen list, the same one until the next append. Costs the log's length: rather use `at`, `since`, `last` or `fold`. */
  get events(): readonly SessionEvent[] {
    return this.entries.all()
  }

  at(seq: number): SessionEvent | undefined {
    return this.entries.at(seq)
  }

  /** The events from `seq` on, up to the end as it is now. */
  since(seq: number): IterableIterator<SessionEvent> {
    return this.entries.range(Math.max(0, seq), this.entries.length)
  }

  last<Type extends SessionEventType>(type: Type): SessionEvent<Type> | undefined {
    return this.entries.last(type)
  }

  /**
   * The chunks that gave the 'assistant/message' at `seq`, or the failed attempt that ended with the finish chunk at
   * `seq`; deltas of a block are one. Empty where the message does not say. Throws a RangeError for another event.
   */
  streamOf(seq: number): StreamChunk[] {
    const event = this.entries.at(seq)
    if (event?.type === 'assistant/message') {
      const sources = (event.sourceEventSeqs ?? []).map(source => this.entries.at(source))
      return mergeDeltas(
        sources.flatMap(source => (source?.type === 'assistant/chunk' ? [source.data.chunk] : [])),
      )
    }
    if (event?.type === 'assistant/chunk' && event.data.chunk.type === 'finish') {
      return mergeDeltas(attemptBefore(each => this.entries.at(each), seq))
    }
    throw new RangeError(`event ${seq} ends no model stream`)
  }

  /** The value of a fold after the last event, or after the events before `before`. */
  fold<State, Type extends SessionEventType>(
    definition: FoldDefinition<State, Type>,
    options: { readonly before?: number } = {},
  ): State {
    const fold = this.#foldOf(definition as unknown as AnyFold)
    const { before } = options
    if (before === undefined || before >= this.entries.length) return fold.value as State
    const kept = fold.before(before) ?? { state: this.#replay(fold.definition, before).value }
    return kept.state as State
  }

  #foldOf(definition: AnyFold): LiveFold {
    const known = this.#folds.get(definition)
    if (known !== undefined) return known
    const fold = this.#replay(definition, this.entries.length)
    this.#folds.set(definition, fold)
    this.entries.follow(fold)
    return fold
  }

  #replay(definition: AnyFold, end: number): LiveFold {
    const fold = new LiveFold(definition, this.header)
    const flagged = new Set(this.flagged.map(({ seq }) => seq))
    for (const event of this.entries.ofTypes(definition.types, end)) {
      if (!flagged.has(event.seq)) fold.apply(event)
    }
    return fold
  }

  /** The header of the last request, canonical; undefined before the first. */
  requestHeader(): EpochHeader | undefined {
    return this.fold(requestHeader)
  }

  requestContext(): RequestContext | undefined {
    return this.fold(requestContext)
  }

  get surface(): SessionSurface {
    return this.manager.surface
  }

  /** What the model sees; a frozen list, the same one until the surface changes. */
  get messages(): readonly Message[] {
    return this.manager.messages
  }

  /** `messages` as a list of the caller's own; the messages are shared and frozen. */
  deriveMessages(): Message[] {
    return this.manager.derive()
  }

  deriveEventMessage(event: SessionEvent): Message | null {
    return deriveEventMessage(event)
  }
}
