import { tokensIn } from './answers.ts'
import type { WireUsage } from './reply.ts'

/** What one answered request cost. Counts do not overlap: billed input = input + cache reads. */
export interface LedgerEntry {
  /** The request's number, from 1. */
  readonly request: number
  readonly model: string
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly outputTokens: number
  /** Part of the output. */
  readonly reasoningTokens: number
}

/** A cache hit covers whole units of so many tokens. */
const cacheUnit = 64

/** The provider's own books: what it charged for, whatever the client made of it. */
export class Ledger {
  readonly entries: LedgerEntry[] = []
  readonly #prompts: string[][] = []

  get total(): Omit<LedgerEntry, 'request' | 'model'> {
    const sum = (pick: (entry: LedgerEntry) => number): number =>
      this.entries.reduce((total, entry) => total + pick(entry), 0)
    return {
      inputTokens: sum(entry => entry.inputTokens),
      cacheReadTokens: sum(entry => entry.cacheReadTokens),
      outputTokens: sum(entry => entry.outputTokens),
      reasoningTokens: sum(entry => entry.reasoningTokens),
    }
  }

  /** The usage of an answer to `body`: the longest beginning that an earlier prompt had is read from the cache. */
  charge(body: PromptBody, outputTokens: number, reasoningTokens: number): WireUsage {
    const prompt = promptParts(body)
    const known = Math.max(0, ...this.#prompts.map(earlier => sharedTokens(earlier, prompt)))
    const promptTokens = prompt.reduce((total, part) => total + tokensIn(part), 0)
    const hit = Math.floor(known / cacheUnit) * cacheUnit
    this.#prompts.push(prompt)
    return {
      prompt_tokens: promptTokens,
      completion_tokens: outputTokens,
      total_tokens: promptTokens + outputTokens,
      prompt_cache_hit_tokens: hit,
      prompt_cache_miss_tokens: promptTokens - hit,
      completion_tokens_details: { reasoning_tokens: reasoningTokens },
    }
  }

  /** Books what an answer said it cost; a scripted usage may lack any field. */
  record(request: number, model: string, usage: Partial<WireUsage>): void {
    const cacheReadTokens = usage.prompt_cache_hit_tokens ?? 0
    this.entries.push({
      request,
      model,
      inputTokens: (usage.prompt_tokens ?? 0) - cacheReadTokens,
      cacheReadTokens,
      outputTokens: usage.completion_tokens ?? 0,
      reasoningTokens: usage.completion_tokens_details?.reasoning_tokens ?? 0,
    })
  }
}

interface PromptBody {
  readonly model?: unknown
  readonly tools?: unknown
  readonly messages?: unknown
}

function promptParts(body: PromptBody): string[] {
  const messages = Array.isArray(body.messages) ? body.messages : []
  return [
    JSON.stringify([body.model ?? null, body.tools ?? []]),
    ...messages.map(message => JSON.stringify(message)),
  ]
}

function sharedTokens(earlier: readonly string[], prompt: readonly string[]): number {
  let tokens = 0
  for (const [at, part] of prompt.entries()) {
    if (earlier[at] !== part) break
    tokens += tokensIn(part)
  }
  return tokens
}
