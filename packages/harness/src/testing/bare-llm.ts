import type { StreamChunk } from '@dsh/protocol'
import { LlmRuntime } from '../core/llm/index.ts'
import { Context } from '../kernel/index.ts'
import { ScriptedAdapter, text } from '../plugins/llm-scripted/index.ts'
import type { ScriptedModelInfo } from '../plugins/llm-scripted/index.ts'

/** The registry of adapters and nothing else. */
export async function bareLlm() {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  return { ctx, llm: ctx.llm }
}

/** An adapter that always says `name`. */
export function says(name: string, info: ScriptedModelInfo = {}): ScriptedAdapter {
  return new ScriptedAdapter(
    Array.from({ length: 4 }, () => text(name)),
    info,
  )
}

/** The text of an answer, and the code of the failure that ended it. */
export async function answerOf(stream: AsyncIterable<StreamChunk>): Promise<string> {
  let said = ''
  for await (const chunk of stream) {
    if (chunk.type === 'text-delta') said += chunk.text
    if (chunk.type === 'finish' && chunk.reason.kind === 'error') said += chunk.reason.failure.code
  }
  return said
}
