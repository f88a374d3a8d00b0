import { CallId } from '@dsh/protocol'
import type { StreamChunk } from '@dsh/protocol'
import type { PluginObject } from '../../kernel/index.ts'
import { LlmAdapter } from '../../core/llm/index.ts'
import type { GenerateOptions, LlmProviderInfo, LlmResolvedModelInfo } from '../../core/llm/index.ts'
import { nextAnswer } from './script.ts'

const model: LlmResolvedModelInfo = {
  provider: 'demo',
  id: 'demo',
  name: 'Demo',
  description: 'Follows a script, needs no key',
  inputModalities: ['text'],
}

/** A model without a provider: it answers from a script, at once, and costs nothing. */
class DemoAdapter extends LlmAdapter {
  override providerInfo(): LlmProviderInfo {
    return { id: model.provider, name: model.name }
  }

  override listModels(): readonly LlmResolvedModelInfo[] {
    return [model]
  }

  override async *stream(options: GenerateOptions): AsyncIterable<StreamChunk> {
    options.signal?.throwIfAborted()
    const tools = new Set(options.tools?.map(({ name }) => name))
    const { text, calls } = nextAnswer(options.messages, tools)
    yield { type: 'block-start', index: 0, blockType: 'text' }
    for (const line of text.split(/(?<=\n)/)) yield { type: 'text-delta', index: 0, text: line }
    yield { type: 'block-end', index: 0, block: { type: 'text', text } }
    for (const [position, call] of calls.entries()) {
      const index = position + 1
      const id = CallId(`demo-${crypto.randomUUID()}`)
      const args = JSON.stringify(call.arguments)
      yield { type: 'block-start', index, blockType: 'tool-call' }
      yield { type: 'tool-call-delta', index, id, name: call.name, argumentsDelta: args }
      yield { type: 'block-end', index, block: { type: 'tool-call', id, name: call.name, arguments: args } }
    }
    yield { type: 'usage', usage: { inputTokens: 0, outputTokens: 0 } }
    yield { type: 'finish', reason: { kind: calls.length === 0 ? 'stop' : 'tool-calls' } }
  }
}

/** The built-in demo model, `demo/demo`: it lets anyone try the real tools without a key, and says what it is. */
export const llmDemo: PluginObject = {
  name: 'llm-demo',
  inject: ['llm'],
  apply(ctx) {
    ctx.llm.registerAdapter([model.provider], new DemoAdapter())
  },
}
