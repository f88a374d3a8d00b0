import type { Context, PluginObject } from '../../kernel/index.ts'
import { Asking } from './asking.ts'
import { approvalSchema } from './config.ts'
import type { ApprovalConfig, ApprovalInput } from './config.ts'
import { declareEvents } from './declare.ts'
import { describePermissions } from './describe.ts'
import { enforce, fence } from './enforce.ts'
import { Judge } from './judge.ts'
import { LoggedPermissions } from './permissions.ts'

export * from './events.ts'
export * from './service.ts'
export type { ApprovalConfig } from './config.ts'

/**
 * What tools may do without asking, what is asked, and what is refused: `ctx.permissions` says it for each session,
 * `ctx.approval` asks.
 *
 * A mode is enforced three times: before the call, by a guard that no listener can overrule, and where a file tool asks
 * for the right to change the very file it found.
 */
export const approval: PluginObject<ApprovalInput, ApprovalConfig> = {
  name: 'approval',
  inject: { required: ['sessions', 'tools'], optional: ['fs', 'systemPrompt'] },
  get Config() {
    return approvalSchema()
  },
  apply(ctx: Context, config: ApprovalConfig) {
    const permissions = new LoggedPermissions(config)
    const asking = new Asking(ctx, config, permissions)
    const judge = new Judge(ctx, config, permissions)
    declareEvents(ctx)
    ctx.provide('permissions', permissions)
    ctx.provide('approval', asking)
    ctx.effect(() => () => asking.close(), 'open questions')
    enforce(ctx, judge)
    fence(ctx, judge)
    ctx.get('systemPrompt')?.context({
      name: 'permissions',
      order: 110,
      text: ({ agent }) => describePermissions(permissions, agent?.session, config),
    })
  },
}
