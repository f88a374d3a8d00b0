import type { ContentBlock, ToolCallBlock } from '@dsh/protocol'
import type { RequestErrorAction } from '../agent/index.ts'
import { LlmError } from '../llm/index.ts'
import { offeredTools, renderPrompt } from '../prompt/index.ts'
import { readAnswer } from './answer.ts'
import type { Attempt } from './answer.ts'
import type { LoopHost, StepPlace } from './host.ts'
import type { Envelope, RequestBuilder } from './request.ts'
import { runToolCalls } from './scheduler.ts'

export interface StepResult {
  /** The model has results to look at. */
  readonly owed: boolean
  /** The answer hit the output limit. */
  readonly truncated: boolean
}

type Answer = Extract<Attempt, { readonly message: object }>

/** What happens between 'step/start' and 'step/end': one answer of the model, and the calls in it. */
export async function runStep(
  host: LoopHost,
  requests: RequestBuilder,
  place: StepPlace,
): Promise<StepResult> {
  const envelope = await assemble(host, place)
  const { message, truncated } = await ask(host, requests, { envelope, place })
  const calls = message.content.filter(isToolCall)
  if (calls.length === 0) return { owed: false, truncated }
  const { concluded } = await runToolCalls(host, calls, place)
  return { owed: !concluded, truncated }
}

async function assemble({ ctx, agent, session }: LoopHost, { signal }: StepPlace): Promise<Envelope> {
  const previousTools = session.requestHeader()?.tools?.map(({ name }) => name) ?? []
  const context = {
    scope: agent,
    agent,
    signal,
    previousTools,
    offeredTools: session.fold(offeredTools),
  }
  const assembly = await ctx.systemPrompt.assemble(context, { contexts: false })
  signal.throwIfAborted()
  return { system: renderPrompt(assembly), tools: assembly.tools }
}

/** Asks until an attempt succeeds or nobody wants another. Each attempt is built anew from the log. */
async function ask(
  host: LoopHost,
  requests: RequestBuilder,
  { envelope, place }: { readonly envelope: Envelope; readonly place: StepPlace },
): Promise<Answer> {
  const { turn, step, signal } = place
  for (;;) {
    const call = await requests.build(envelope, place)
    const attempt = await readAnswer(host, call, place)
    if (attempt.failure === undefined) return attempt
    const { failure } = attempt
    const { config, retryPolicy } = call
    const payload = {
      turn,
      step,
      provider: config.provider,
      failure,
      ...(retryPolicy === undefined ? {} : { retryPolicy }),
      signal,
    }
    const giveUp = (): Promise<RequestErrorAction> => Promise.resolve(undefined)
    const action = await host.events.waterfall('agent/request-error', payload, giveUp)
    signal.throwIfAborted()
    if (action?.kind !== 'retry') throw new LlmError(failure)
  }
}

function isToolCall(block: ContentBlock): block is ToolCallBlock {
  return block.type === 'tool-call'
}
