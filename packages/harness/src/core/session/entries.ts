import type { SessionEvent, SessionEventType } from '@dsh/protocol'
import { isDelta } from '../llm/index.ts'
import { ChunkRun } from './chunk-run.ts'
import type { LiveFold } from './fold.ts'

/** What is kept per type: its last seq, the seqs of all (chunks aside: there are too many), and who folds it. */
interface TypeIndex {
  last: number
  readonly seqs: number[]
  readonly folds: LiveFold[]
}

/** The events of one log, by seq and by type. */
export class Entries {
  readonly #entries: (SessionEvent | ChunkRun)[] = []
  readonly #types = new Map<string, TypeIndex>()
  readonly #chunks: TypeIndex
  #run: ChunkRun | undefined
  #all: readonly SessionEvent[] | undefined

  constructor() {
    this.#chunks = this.#indexOf('assistant/chunk')
  }

  get length(): number {
    return this.#entries.length
  }

  /** Its seq must be the length. */
  push(event: SessionEvent): void {
    this.#closeRun()
    this.#entries.push(event)
    this.#all = undefined
    const index = event.type === 'assistant/chunk' ? this.#chunks : this.#indexOf(event.type)
    index.last = event.seq
    if (index !== this.#chunks) index.seqs.push(event.seq)
    for (const fold of index.folds) fold.apply(event)
  }

  /** The same for an event whose chunk has no fields but the declared ones; the object itself is not kept. */
  pushChunk(event: SessionEvent<'assistant/chunk'>): void {
    const { chunk } = event.data
    if (!isDelta(chunk)) {
      this.push(event)
      return
    }
    if (this.#run?.push(event, chunk) !== true) {
      this.#closeRun()
      this.#run = new ChunkRun(event, chunk)
    }
    this.#entries.push(this.#run as ChunkRun)
    this.#all = undefined
    this.#chunks.last = event.seq
    for (const fold of this.#chunks.folds) fold.apply(event)
  }

  at(seq: number): SessionEvent | undefined {
    const entry = this.#entries[seq]
    return entry instanceof ChunkRun ? entry.at(seq) : entry
  }

  last<Type extends SessionEventType>(type: Type): SessionEvent<Type> | undefined {
    const seq = this.#types.get(type)?.last
    return seq === undefined ? undefined : (this.at(seq) as SessionEvent<Type> | undefined)
  }

  /** A frozen list; the same one until an event is added. */
  all(): readonly SessionEvent[] {
    return (this.#all ??= Object.freeze(this.#entries.map((_, seq) => this.at(seq) as SessionEvent)))
  }

  *range(from: number, to: number): Generator<SessionEvent, void, undefined> {
    for (let seq = from; seq < to; seq++) yield this.at(seq) as SessionEvent
  }

  /** Events of `types` before `end`, in order. */
  *ofTypes(types: readonly string[], end: number): Generator<SessionEvent, void, undefined> {
    if (types.includes('assistant/chunk')) {
      for (const event of this.range(0, end)) if (types.includes(event.type)) yield event
      return
    }
    const seqs = types.flatMap(type => this.#types.get(type)?.seqs ?? [])
    for (const seq of seqs.sort((a, b) => a - b)) {
      if (seq >= end) return
      yield this.at(seq) as SessionEvent
    }
  }

  /** From now on `fold` gets every event of its types. */
  follow(fold: LiveFold): void {
    for (const type of new Set<string>(fold.definition.types)) this.#indexOf(type).folds.push(fold)
  }

  /** The first `length` events, sharing what can be shared. */
  copy(length: number): Entries {
    const copy = new Entries()
    for (const entry of this.#entries.slice(0, length)) copy.#take(entry)
    return copy
  }

  #closeRun(): void {
    this.#run?.seal()
    this.#run = undefined
  }

  #take(entry: SessionEvent | ChunkRun): void {
    const seq = this.#entries.push(entry) - 1
    if (entry instanceof ChunkRun) {
      this.#chunks.last = seq
      return
    }
    const index = this.#indexOf(entry.type)
    index.last = seq
    if (index !== this.#chunks) index.seqs.push(seq)
  }

  #indexOf(type: string): TypeIndex {
    const known = this.#types.get(type)
    if (known !== undefined) return known
    const index: TypeIndex = { last: -1, seqs: [], folds: [] }
    this.#types.set(type, index)
    return index
  }
}
