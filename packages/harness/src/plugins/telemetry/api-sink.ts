import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api'
import { endsWithin } from '../../kernel/index.ts'
import type { ParentSpan, SpanDescription, SpanSink } from './span.ts'

/**
 * Gives spans to whatever OpenTelemetry SDK the process registered; without one they go nowhere.
 *
 * A parent is started with its first child, which needs it, and ended when it has ended itself.
 */
export class ApiSink implements SpanSink {
  readonly #tracer: Tracer = trace.getTracer('dsh')
  readonly #open = new Map<string, Span>()

  emit(span: SpanDescription): void {
    const started = this.#open.get(span.id)
    this.#open.delete(span.id)
    const own = started ?? this.#start(span, this.#contextOf(span.parent))
    own.setAttributes(attributesOf(span))
    if (span.error !== undefined) own.setStatus({ code: SpanStatusCode.ERROR, message: span.error })
    own.end(span.endTime)
  }

  async shutDown(ms: number): Promise<void> {
    this.#open.clear()
    const provider = trace.getTracerProvider()
    // The SDK may have brought a copy of the API of its own.
    const { getDelegate } = provider as { getDelegate?: () => unknown }
    const sdk = (getDelegate?.call(provider) ?? provider) as { forceFlush?: () => Promise<void> }
    if (sdk.forceFlush !== undefined) await endsWithin(sdk.forceFlush(), ms)
  }

  #contextOf(parent: ParentSpan | undefined): Context {
    if (parent === undefined) return ROOT_CONTEXT
    let span = this.#open.get(parent.id)
    if (span === undefined) {
      span = this.#start({ ...parent, kind: 'internal' }, ROOT_CONTEXT)
      this.#open.set(parent.id, span)
    }
    return trace.setSpan(ROOT_CONTEXT, span)
  }

  #start(
    { name, kind, startTime }: Pick<SpanDescription, 'name' | 'kind' | 'startTime'>,
    context: Context,
  ): Span {
    const options = { startTime, kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL }
    return this.#tracer.startSpan(name, options, context)
  }
}

function attributesOf({ attributes }: SpanDescription): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([key, value]) => [key, typeof value === 'object' ? [...value] : value]),
  )
}
