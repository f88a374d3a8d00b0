import type { CallId, ContentBlock, FinishReason, ReplayState, StreamChunk, TokenUsage } from '@dsh/protocol'
import { adopt, messageOf } from '../../kernel/index.ts'
import { llmError, mendedFailure } from './failure.ts'

/**
 * A frozen chunk with the declared fields alone, each read once, so that a log may keep it without looking again.
 * Throws MALFORMED_RESPONSE for what is no chunk.
 */
export function adoptChunk(value: unknown): StreamChunk {
  if (typeof value !== 'object' || value === null)
    throw malformed(`${value === null ? 'null' : typeof value} instead of a chunk`)
  const chunk = value as StreamChunk
  const { type } = chunk
  switch (type) {
    case 'text-delta':
    case 'reasoning-delta':
      return Object.freeze({ type, index: indexOf(chunk), text: stringOf(chunk.text, type, 'text') })
    case 'tool-call-delta':
      return adoptToolCallDelta(chunk)
    case 'block-start':
      return Object.freeze({
        type,
        index: indexOf(chunk),
        blockType: stringOf(chunk.blockType, type, 'blockType') as ContentBlock['type'],
      })
    case 'block-end':
      return Object.freeze({ type, index: indexOf(chunk), block: adoptBlock(chunk.block) })
    case 'usage':
      return Object.freeze({ type, usage: adoptUsage(chunk.usage) })
    case 'finish':
      return adoptFinish(chunk)
    default:
      throw malformed(`a chunk of unknown type ${JSON.stringify(type)}`)
  }
}

type ChunkOf<Type extends StreamChunk['type']> = Extract<StreamChunk, { readonly type: Type }>

/** A piece of a block. */
export type Delta = ChunkOf<'text-delta' | 'reasoning-delta' | 'tool-call-delta'>

export function isDelta(chunk: StreamChunk): chunk is Delta {
  return chunk.type === 'text-delta' || chunk.type === 'reasoning-delta' || chunk.type === 'tool-call-delta'
}

function adoptToolCallDelta(chunk: ChunkOf<'tool-call-delta'>): StreamChunk {
  const { type, id: givenId, name } = chunk
  const index = indexOf(chunk)
  const id = stringOf(givenId, type, 'id') as CallId
  const argumentsDelta = stringOf(chunk.argumentsDelta, type, 'argumentsDelta')
  if (name === undefined) return Object.freeze({ type, index, id, argumentsDelta })
  return Object.freeze({ type, index, id, name: stringOf(name, type, 'name'), argumentsDelta })
}

function adoptFinish(chunk: ChunkOf<'finish'>): StreamChunk {
  const { type, reason: givenReason, replayState } = chunk
  const reason = adoptReason(givenReason)
  if (replayState === undefined) return Object.freeze({ type, reason })
  return Object.freeze({ type, reason, replayState: adoptReplayState(replayState) })
}

/** A failure told in the stream keeps what is right of it, so that a bad detail does not hide its code. */
function adoptReason(value: unknown): FinishReason {
  if (typeof value !== 'object' || value === null) throw malformed('a finish chunk without a reason')
  const { kind, failure } = value as { kind?: unknown; failure?: unknown }
  if (kind === 'error' || kind === 'aborted') return Object.freeze({ kind, failure: mendedFailure(failure) })
  const reason = adoptJson(value as FinishReason, 'finish reason')
  if (typeof kind !== 'string' || reason.kind !== kind) throw malformed('a finish reason without a kind')
  return reason
}

function adoptReplayState(value: unknown): ReplayState {
  if (typeof value !== 'object' || value === null) throw malformed(`a replayState that is a ${typeof value}`)
  const { response, blocks } = value as ReplayState
  if (blocks !== undefined && !Array.isArray(blocks)) throw malformed('replayState blocks that are no list')
  return adoptJson<ReplayState>(
    { ...(response === undefined ? {} : { response }), ...(blocks === undefined ? {} : { blocks }) },
    'replayState',
  )
}

/** Fields of the core's own kinds are checked; kinds of plugins only for being JSON. */
function adoptBlock(value: unknown): ContentBlock {
  if (typeof value !== 'object' || value === null) throw malformed('a block-end chunk without a block')
  const block = adoptJson(value as ContentBlock, 'block')
  const { type } = block
  switch (type) {
    case 'text':
    case 'reasoning':
      stringOf(block.text, type, 'text')
      break
    case 'tool-call':
      stringOf(block.id, type, 'id')
      stringOf(block.name, type, 'name')
      stringOf(block.arguments, type, 'arguments')
      break
    default:
      if (typeof type !== 'string') throw malformed('a block without a type')
  }
  return block
}

const optionalCounts = ['cacheReadTokens', 'cacheWriteTokens', 'reasoningTokens'] as const

function adoptUsage(value: unknown): TokenUsage {
  if (typeof value !== 'object' || value === null) throw malformed('a usage chunk without usage')
  const given = value as TokenUsage
  const usage: { -readonly [Key in keyof TokenUsage]: TokenUsage[Key] } = {
    inputTokens: countOf(given.inputTokens, 'inputTokens'),
    outputTokens: countOf(given.outputTokens, 'outputTokens'),
  }
  for (const key of optionalCounts) {
    const count = given[key]
    if (count !== undefined) usage[key] = countOf(count, key)
  }
  return Object.freeze(usage)
}

function indexOf(chunk: { readonly type: string; readonly index: number }): number {
  const { index } = chunk
  if (Number.isSafeInteger(index) && index >= 0) return index === 0 ? 0 : index
  throw malformed(`a ${chunk.type} chunk with index ${String(index)}`)
}

function countOf(value: unknown, field: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value === 0 ? 0 : (value as number)
  throw malformed(`a usage chunk with ${field} ${String(value)}`)
}

function stringOf(value: unknown, type: string, field: string): string {
  if (typeof value === 'string') return value
  throw malformed(`"${type}" with ${field} of type ${typeof value}`)
}

function adoptJson<T>(value: T, what: string): T {
  try {
    return adopt(value)
  } catch (cause) {
    throw malformed(`a ${what} that is not JSON: ${messageOf(cause)}`, cause)
  }
}

function malformed(what: string, cause?: unknown): Error {
  return llmError('MALFORMED_RESPONSE', `the stream gave ${what}`, cause === undefined ? {} : { cause })
}
