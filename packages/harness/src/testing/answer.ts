import type { FinishReason, StreamChunk, TokenUsage } from '@dsh/protocol'
import { BlockAssembler, toLlmFailure } from '../core/llm/index.ts'

/** One model answer, read to its end. */
export interface CollectedAnswer {
  readonly chunks: readonly StreamChunk[]
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  readonly usage: TokenUsage | undefined
  /** A thrown failure shows as it would in a log: as a finish of kind error. */
  readonly finish: FinishReason
  /** What was thrown, as it was thrown. */
  readonly thrown: unknown
}

/** Reads `stream` to its end; what it throws is part of the answer. */
export async function collectAnswer(stream: AsyncIterable<StreamChunk>): Promise<CollectedAnswer> {
  const chunks: StreamChunk[] = []
  const assembler = new BlockAssembler()
  let thrown: unknown
  try {
    for await (const chunk of stream) {
      chunks.push(chunk)
      assembler.push(chunk)
    }
  } catch (error) {
    thrown = error
  }
  const blocks = assembler.blocks()
  const said = (type: 'text' | 'reasoning'): string =>
    blocks.map(block => (block.type === type ? (block as { text: string }).text : '')).join('')
  return {
    chunks,
    text: said('text'),
    reasoning: said('reasoning'),
    calls: blocks
      .filter(block => block.type === 'tool-call')
      .map(({ id, name, arguments: args }) => ({ id, name, arguments: args })),
    usage: assembler.usage,
    finish: thrown === undefined ? assembler.finish : { kind: 'error', failure: toLlmFailure(thrown) },
    thrown,
  }
}
