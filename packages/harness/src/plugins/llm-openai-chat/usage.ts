import type { TokenUsage } from '@dsh/protocol'
import { isFields } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'

/**
 * The counts of a usage object in any of the dialects, made disjoint; undefined where it counts nothing.
 *
 * On the wire the prompt includes what a cache served, and some hosts leave the thinking out of the output.
 */
export function toTokenUsage(usage: unknown): TokenUsage | undefined {
  if (!isFields(usage)) return undefined
  const prompt = firstCount(usage['prompt_tokens'], usage['input_tokens'])
  const completion = firstCount(usage['completion_tokens'], usage['output_tokens'])
  if (prompt === undefined && completion === undefined) return undefined
  const promptDetails = fieldsOf(usage['prompt_tokens_details'] ?? usage['input_tokens_details'])
  const outputDetails = fieldsOf(usage['completion_tokens_details'] ?? usage['output_tokens_details'])
  const read = firstCount(
    usage['prompt_cache_hit_tokens'],
    promptDetails['cached_tokens'],
    usage['cached_tokens'],
    usage['cache_read_input_tokens'],
  )
  const write = firstCount(
    promptDetails['cache_write_tokens'],
    promptDetails['cache_creation_tokens'],
    usage['cache_creation_input_tokens'],
  )
  const reasoning = firstCount(outputDetails['reasoning_tokens'], usage['reasoning_tokens'])
  const total = firstCount(usage['total_tokens'])
  const output = wholeOutput({
    prompt: prompt ?? 0,
    completion: completion ?? 0,
    reasoning: reasoning ?? 0,
    total,
  })
  return {
    inputTokens: Math.max(0, (prompt ?? 0) - (read ?? 0) - (write ?? 0)),
    outputTokens: output,
    ...(read === undefined ? {} : { cacheReadTokens: read }),
    ...(write === undefined ? {} : { cacheWriteTokens: write }),
    ...(reasoning === undefined ? {} : { reasoningTokens: Math.min(reasoning, output) }),
  }
}

interface OutputCounts {
  readonly prompt: number
  readonly completion: number
  readonly reasoning: number
  readonly total: number | undefined
}

function wholeOutput({ prompt, completion, reasoning, total }: OutputCounts): number {
  const isApart = reasoning > 0 && total === prompt + completion + reasoning
  return isApart || reasoning > completion ? completion + reasoning : completion
}

function firstCount(...values: readonly unknown[]): number | undefined {
  return values.find((value): value is number => Number.isSafeInteger(value) && (value as number) >= 0)
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {}
}
