import type { PluginObject } from '../../kernel/index.ts'
import { configSchema } from './config.ts'
import type { CheckedConfig, ScriptedConfig } from './config.ts'

export { ScriptedAdapter } from './adapter.ts'
export type { ScriptedModelInfo } from './adapter.ts'
export type { ScriptedConfig, WrittenEntry } from './config.ts'
export { fail, text, toolCall, toolCalls } from './script.ts'
export type { ScriptedCall, ScriptedChunks, ScriptEntry } from './script.ts'

/** A model that says what a script tells it to: for tests, recordings and examples. */
export const llmScripted: PluginObject<ScriptedConfig | undefined, CheckedConfig> = {
  name: 'llm-scripted',
  inject: ['llm'],
  get Config() {
    return configSchema()
  },
  apply(ctx, { provider, adapter }) {
    ctx.llm.registerAdapter([provider], adapter)
  },
}
