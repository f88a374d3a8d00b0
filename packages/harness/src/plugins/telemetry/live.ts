import type { SessionEvent } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import type { Context } from '../../kernel/index.ts'
import { SpanDeriver } from './derive.ts'
import type { SpanDescription, SpanSink } from './span.ts'

/** Spans that wait for their sink to be loaded. */
const longestWait = 1000

/**
 * Tells a sink the spans of all live sessions, each at most once. What a session had before it was live here is not
 * told again.
 */
export class LiveSpans {
  readonly #ctx: Context
  readonly #open: () => Promise<SpanSink>
  readonly #derivers = new WeakMap<Session, SpanDeriver>()
  #sink: SpanSink | undefined
  #opening: Promise<void> | undefined
  #waiting: SpanDescription[] = []

  /** `open` is called for the first span. */
  constructor(ctx: Context, open: () => Promise<SpanSink>) {
    this.#ctx = ctx
    this.#open = open
  }

  hear(session: Session, event: SessionEvent): void {
    let deriver = this.#derivers.get(session)
    if (deriver === undefined) {
      deriver = new SpanDeriver(session.header, session.requestHeader()?.config)
      this.#derivers.set(session, deriver)
    }
    for (const span of deriver.next(event)) this.#tell(span)
  }

  async shutDown(ms: number): Promise<void> {
    await this.#opening
    await this.#sink?.shutDown(ms)
  }

  /** A rule that fails keeps the span back: what it was to take out must not leave. */
  #tell(span: SpanDescription): void {
    try {
      const redacted = this.#ctx.waterfall('telemetry/span', span, () => span)
      if (redacted !== undefined) this.#emit(redacted)
    } catch (error) {
      this.#ctx.fiber.report(error, 'telemetry/span')
    }
  }

  #emit(span: SpanDescription): void {
    if (this.#sink !== undefined) return this.#sink.emit(span)
    if (this.#waiting.length < longestWait) this.#waiting.push(span)
    this.#opening ??= this.#load()
  }

  async #load(): Promise<void> {
    try {
      const sink = await this.#open()
      for (const span of this.#waiting) sink.emit(span)
      this.#sink = sink
    } catch (error) {
      this.#ctx.fiber.report(error, 'telemetry')
    }
    this.#waiting = []
  }
}
