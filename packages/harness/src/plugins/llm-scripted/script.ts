import { randomUUID } from 'node:crypto'
import { CallId } from '@dsh/protocol'
import type { JsonValue, LlmFailure, StreamChunk } from '@dsh/protocol'
import type { GenerateOptions } from '../../core/llm/index.ts'

/** What a function entry may give: the chunks of one answer, at once or as they come. */
export type ScriptedChunks = Iterable<StreamChunk> | AsyncIterable<StreamChunk>

/**
 * The answer to one request: its chunks, a function that works them out, or `'hang'` — a first word and then
 * nothing until the request is aborted.
 */
export type ScriptEntry =
  | readonly StreamChunk[]
  | 'hang'
  | ((options: GenerateOptions) => ScriptedChunks | Promise<ScriptedChunks>)

/** `text` in one block, a delta for each character, then usage and finish `stop`. */
export function text(content: string): readonly StreamChunk[] {
  const characters = Array.from(content)
  return [
    { type: 'block-start', index: 0, blockType: 'text' },
    ...characters.map((character): StreamChunk => ({ type: 'text-delta', index: 0, text: character })),
    { type: 'block-end', index: 0, block: { type: 'text', text: content } },
    usage(characters.length),
    { type: 'finish', reason: { kind: 'stop' } },
  ]
}

export interface ScriptedCall {
  readonly name: string
  /** Text goes out as it is, so that an answer may hold broken JSON. */
  readonly args: JsonValue
  /** Left out: one that is unlike all others. */
  readonly id?: string
}

/** An answer that asks for one tool. */
export function toolCall(name: string, args: JsonValue, id?: string): readonly StreamChunk[] {
  return toolCalls([{ name, args, ...(id === undefined ? {} : { id }) }])
}

/** An answer that asks for several tools at once. */
export function toolCalls(calls: readonly ScriptedCall[]): readonly StreamChunk[] {
  return [
    ...calls.flatMap(callChunks),
    usage(calls.length),
    { type: 'finish', reason: { kind: 'tool-calls' } },
  ]
}

/** A request that the provider refuses with `code`. */
export function fail(code: string, facts: Partial<Omit<LlmFailure, 'code'>> = {}): readonly StreamChunk[] {
  const failure: LlmFailure = { message: `scripted failure ${code}`, ...facts, code }
  return [{ type: 'finish', reason: { kind: 'error', failure } }]
}

function callChunks({ name, args, id }: ScriptedCall, index: number): readonly StreamChunk[] {
  const callId = CallId(id ?? `call_${randomUUID()}`)
  const raw = typeof args === 'string' ? args : JSON.stringify(args)
  return [
    { type: 'block-start', index, blockType: 'tool-call' },
    { type: 'tool-call-delta', index, id: callId, name, argumentsDelta: '' },
    { type: 'tool-call-delta', index, id: callId, argumentsDelta: raw },
    { type: 'block-end', index, block: { type: 'tool-call', id: callId, name, arguments: raw } },
  ]
}

function usage(outputTokens: number): StreamChunk {
  return { type: 'usage', usage: { inputTokens: 1, outputTokens } }
}
