/** What a span says. Never what a person, a model or a tool wrote. */
export type SpanValue = string | number | boolean | readonly string[]

export interface ParentSpan {
  readonly id: string
  readonly name: string
  readonly startTime: number
}

/**
 * One thing that took time, whole: it is made when it has ended, children before their parent. Its id follows from the
 * log, so the same log gives the same ids wherever it is read.
 */
export interface SpanDescription {
  readonly id: string
  /** The span that all of one trace are below, itself included. */
  readonly rootId: string
  readonly parent?: ParentSpan
  readonly name: string
  readonly kind: 'internal' | 'client'
  /** Epoch milliseconds. */
  readonly startTime: number
  readonly endTime: number
  readonly attributes: Readonly<Record<string, SpanValue>>
  /** The code of what it failed with. */
  readonly error?: string
}

/** Where finished spans go. Takes each at most once; what it cannot keep up with is lost. */
export interface SpanSink {
  emit(span: SpanDescription): void
  /** Sends what is left, within `ms`. */
  shutDown(ms: number): Promise<void>
}
