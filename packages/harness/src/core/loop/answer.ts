import type { AssistantMessage, LlmFailure } from '@dsh/protocol'
import { BlockAssembler, createAssistantMessage } from '../llm/index.ts'
import type { LoopHost, StepPlace } from './host.ts'
import type { LoopCall } from './request.ts'

export type Attempt =
  | { readonly failure: LlmFailure }
  | { readonly failure?: undefined; readonly message: AssistantMessage; readonly truncated: boolean }

/**
 * Logs a stream chunk by chunk and then, if it ended well, its message.
 *
 * Where the turn is cancelled in the middle, what a person saw so far becomes a message of its own, and the abort is
 * thrown on. A failed attempt leaves its chunks alone. What a listener of 'llm/stream' throws is thrown on.
 */
export async function readAnswer(host: LoopHost, call: LoopCall, place: StepPlace): Promise<Attempt> {
  const { session } = host
  const { turn, step, signal } = place
  const assembler = new BlockAssembler()
  const chunks: number[] = []
  try {
    for await (const chunk of call.stream()) {
      signal.throwIfAborted()
      chunks.push(session.appendChunk(turn, step, chunk).seq)
      assembler.push(chunk)
    }
    signal.throwIfAborted()
  } catch (error) {
    if (signal.aborted) logPrefix(host, call, { turn, step, assembler, chunks })
    throw error
  }
  const failure = failureOf(assembler)
  if (failure !== undefined) return { failure }
  const message = assembler.message(call.config)
  const { usage, truncatedToolCalls } = assembler
  session.append(
    'assistant/message',
    {
      turn,
      step,
      message,
      ...(usage === undefined ? {} : { usage }),
      ...(truncatedToolCalls === 0 ? {} : { truncatedToolCalls }),
    },
    { surfaceOp: 'append', sourceEventSeqs: chunks },
  )
  return { message, truncated: assembler.finish.kind === 'max-tokens' }
}

interface CutShort {
  readonly turn: number
  readonly step: number
  readonly assembler: BlockAssembler
  readonly chunks: readonly number[]
}

/** The next request must hold what the person saw. */
function logPrefix({ session }: LoopHost, call: LoopCall, { turn, step, assembler, chunks }: CutShort): void {
  if (failureOf(assembler) !== undefined) return
  const content = assembler.interruptedBlocks()
  if (content.length === 0) return
  const { provider, model } = call.config
  const message = createAssistantMessage({ content, source: { kind: 'model', provider, model } })
  const { usage } = assembler
  session.append(
    'assistant/message',
    { turn, step, message, ...(usage === undefined ? {} : { usage }), interrupted: true },
    { surfaceOp: 'append', sourceEventSeqs: chunks },
  )
}

function failureOf({ finish }: BlockAssembler): LlmFailure | undefined {
  return finish.kind === 'error' || finish.kind === 'aborted' ? finish.failure : undefined
}
