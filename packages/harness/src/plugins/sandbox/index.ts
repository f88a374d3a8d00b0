import type { Context, PluginObject } from '../../kernel/index.ts'
import { sandboxSchema } from './config.ts'
import type { SandboxConfig, SandboxInput } from './config.ts'
import { sandboxModeSchema } from './events.ts'
import { fence } from './fence.ts'
import { LoggedPolicy } from './policy.ts'

export * from './events.ts'
export * from './service.ts'
export type { SandboxConfig } from './config.ts'
export { changeRefusal } from './fence.ts'

/** How far tools reach: `ctx.sandboxPolicy` says it for each call, and file tools are held to it. */
export const sandbox: PluginObject<SandboxInput, SandboxConfig> = {
  name: 'sandbox',
  inject: { required: ['sessions'], optional: ['fs'] },
  get Config() {
    return sandboxSchema()
  },
  apply(ctx: Context, config: SandboxConfig) {
    declareMode(ctx)
    ctx.provide('sandboxPolicy', new LoggedPolicy(config))
    fence(ctx)
  },
}

function declareMode(ctx: Context): void {
  let schema: ReturnType<typeof sandboxModeSchema> | undefined
  ctx.sessions.registerEventType({
    type: 'sandbox/mode',
    validate(data) {
      schema ??= sandboxModeSchema()
      const [issue] = schema.safeParse(data).error?.issues ?? []
      if (issue !== undefined) throw new TypeError(`${issue.path.join('.') || 'data'}: ${issue.message}`)
    },
  })
}
