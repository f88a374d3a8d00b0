import type { ImageBlock } from '@dsh/protocol'
import type { Context, Emit, PluginObject } from '../../kernel/index.ts'
import type { GenerateOptions } from '../../core/llm/index.ts'
import type {} from '../../core/session/index.ts'
import { OpenAIChatAdapter } from './adapter.ts'
import type { OpenAIChatConfig } from './config.ts'
import type { WireNotice } from './notice.ts'

export { checkKey, proxyFor } from '../http/index.ts'
export type { CheckedKey, ReadEnv } from '../http/index.ts'
export { OpenAIChatAdapter } from './adapter.ts'
export { providerCatalog } from './catalog.ts'
export type { ModelFacts, ModelPrice, PeakHours, ProviderFacts } from './catalog.ts'
export type { OpenAIChatConfig, ProviderConfig } from './config.ts'
export type { Balance, Host } from './host.ts'
export type { WireNotice, WireNoticeCode } from './notice.ts'
export type { Quirks, ThinkingStyle } from './quirks.ts'
export { TransportError } from './transport.ts'
export type { Transport, WireRequest, WireResponse } from './transport.ts'

declare module '../../kernel/index.ts' {
  interface Events {
    /** A request or an answer was mended, or something in it was passed over. Each thing is told once. */
    'llm/notice': Emit<[notice: WireNotice]>
  }
}

/** The models of DeepSeek and of all hosts that speak OpenAI's Chat Completions. */
export const llmOpenAIChat: PluginObject<OpenAIChatConfig | undefined> = {
  name: 'llm-openai-chat',
  inject: { required: ['llm'], optional: ['sessions'] },
  apply(ctx, config = {}) {
    const adapter = new OpenAIChatAdapter(
      { loadImage: (block, options) => artifactOf(ctx, block, options), ...config },
      notice => ctx.emit('llm/notice', notice),
    )
    ctx.effect(() => () => adapter.close(), 'provider connections')
    ctx.llm.registerAdapter(adapter.providers, adapter)
    for (const provider of adapter.providers) {
      ctx.llm.registerModelDiscovery(provider, (_settings, signal) =>
        adapter.host(provider).listModels(signal),
      )
    }
  },
}

async function artifactOf(
  ctx: Context,
  { attachment }: ImageBlock,
  { sessionId }: GenerateOptions,
): Promise<Uint8Array | undefined> {
  const session = sessionId === undefined ? undefined : ctx.get('sessions')?.get(sessionId)
  return await session?.artifacts.get(attachment.sha256)
}
