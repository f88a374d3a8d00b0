import type { Context, PluginObject } from '../../kernel/index.ts'
import { codeRuntimeSchema } from './config.ts'
import type { CodeRuntimeConfig, CodeRuntimeInput } from './config.ts'
import { declareDispatchEvents } from './declare.ts'
import { LocalCodeRuntime } from './local.ts'
import { nodeLanguage } from './node.ts'
import { pythonLanguage } from './python.ts'
import { runCode } from './tools/run-code.ts'
import { sdkSection } from './tools/sdk.ts'

export * from './service.ts'
export type { CodeRuntimeConfig } from './config.ts'
export type {} from './events.ts'

const sdkOrder = 150

/** Programs of models, in processes of their own: `ctx.codeRuntime`. */
export const localCodeRuntime: PluginObject<CodeRuntimeInput, CodeRuntimeConfig> = {
  name: 'code-runtime-local',
  inject: { required: ['subprocess'], optional: ['sandbox', 'sandboxPolicy'] },
  get Config() {
    return codeRuntimeSchema()
  },
  apply(ctx: Context, config: CodeRuntimeConfig) {
    const language = config.language === 'python' ? pythonLanguage : nodeLanguage
    const service = new LocalCodeRuntime(ctx, language, config)
    ctx.effect(() => () => service.close(), 'programs')
    ctx.provide('codeRuntime', service)
  },
}

/** The tool run_code, whose programs call tools, over whatever provides `ctx.codeRuntime`. */
export const codeTools: PluginObject<CodeRuntimeInput, CodeRuntimeConfig> = {
  name: 'code-tools',
  inject: { required: ['codeRuntime', 'sessions', 'tools'], optional: ['sandboxPolicy', 'systemPrompt'] },
  get Config() {
    return codeRuntimeSchema()
  },
  apply(ctx: Context, config: CodeRuntimeConfig) {
    declareDispatchEvents(ctx)
    ctx.tools.transport(runCode(ctx, config))
    ctx.tools.presentAs(config.presentation)
    const text = sdkSection(ctx)
    ctx.get('systemPrompt')?.section({ name: 'tool:run_code', order: sdkOrder, text, verbatim: true })
  },
}

/** Both of them: programs that call tools. */
export const codeRuntime: PluginObject<CodeRuntimeInput, CodeRuntimeConfig> = {
  name: 'code-runtime',
  inject: ['subprocess'],
  get Config() {
    return codeRuntimeSchema()
  },
  apply(ctx: Context, config: CodeRuntimeConfig) {
    const local = ctx.plugin(localCodeRuntime, config)
    if (local.state === 'failed') throw local.error
    ctx.plugin(codeTools, config, { wait: true })
  },
}
