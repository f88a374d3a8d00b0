import type { LlmCallConfig, SessionHeader } from '@dsh/protocol'
import type { SpanDescription, SpanValue } from './span.ts'

export type Attributes = Readonly<Record<string, SpanValue>>

/** The span as it is told, in good order. */
export function finished(span: Omit<SpanDescription, 'error'>, error: string | undefined): SpanDescription {
  const { attributes } = span
  // A clock that runs backwards must not give a span that ends before it begins.
  const endTime = Math.max(span.startTime, span.endTime)
  if (error === undefined) return { ...span, endTime }
  return { ...span, endTime, attributes: { ...attributes, 'error.type': error }, error }
}

export function routeAttributes({ provider, model }: Pick<LlmCallConfig, 'provider' | 'model'>): Attributes {
  return { 'gen_ai.provider.name': provider, 'gen_ai.request.model': model }
}

export function placeAttributes({ id }: SessionHeader, startSeq: number, endSeq: number): Attributes {
  return { 'gen_ai.conversation.id': id, 'dsh.seq.start': startSeq, 'dsh.seq.end': endSeq }
}
