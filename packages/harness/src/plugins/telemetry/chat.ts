import type { FinishReason, TokenUsage } from '@dsh/protocol'
import type { SpanValue } from './span.ts'

/** One request that is under way, and what is known of it so far. */
export class Chat {
  readonly seq: number
  readonly startTime: number
  usage: TokenUsage | undefined
  finish: FinishReason | undefined

  constructor(seq: number, startTime: number) {
    this.seq = seq
    this.startTime = startTime
  }

  get error(): string | undefined {
    const { finish } = this
    return finish?.kind === 'error' || finish?.kind === 'aborted' ? finish.failure.code : undefined
  }

  get attributes(): Readonly<Record<string, SpanValue>> {
    const { finish, usage } = this
    return {
      ...(finish === undefined
        ? {}
        : { 'gen_ai.response.finish_reasons': [finishNames[finish.kind] ?? finish.kind] }),
      ...(usage === undefined ? {} : usageAttributes(usage)),
    }
  }
}

/** The words of the conventions, where they have one. */
const finishNames: Readonly<Record<string, string>> = { 'tool-calls': 'tool_calls', 'max-tokens': 'length' }

/** Their input is all that was sent, from the cache or not. */
function usageAttributes(usage: TokenUsage): Readonly<Record<string, number>> {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    'gen_ai.usage.input_tokens': inputTokens + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0),
    'gen_ai.usage.output_tokens': outputTokens,
    ...(cacheReadTokens === undefined ? {} : { 'gen_ai.usage.cache_read.input_tokens': cacheReadTokens }),
    ...(cacheWriteTokens === undefined
      ? {}
      : { 'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens }),
    ...(reasoningTokens === undefined ? {} : { 'dsh.usage.reasoning_tokens': reasoningTokens }),
  }
}
