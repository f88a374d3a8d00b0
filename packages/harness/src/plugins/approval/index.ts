import type { Context, PluginObject } from '../../kernel/index.ts'
import { Asking } from './asking.ts'
import { approvalSchema } from './config.ts'
import type { ApprovalConfig, ApprovalInput } from './config.ts'
import { declareEvents } from './declare.ts'
import { describePermissions } from './describe.ts'
import { enforce } from './enforce.ts'
import { Judge } from './judge.ts'
import { LoggedPermissions } from './permissions.ts'

export * from './events.ts'
export * from './service.ts'
export type { ApprovalConfig } from './config.ts'

/**
 * What tools may do without asking, what is asked, and what is refused: `ctx.permissions` says it for each session,
 * `ctx.approval` asks.
 *
 * A mode is enforced before the call and by a guard that no listener can overrule; the sandbox holds to it what runs.
 */
export const approval: PluginObject<ApprovalInput, ApprovalConfig> = {
  name: 'approval',
  inject: { required: ['sessions', 'tools', 'sandboxPolicy'], optional: ['fs', 'systemPrompt'] },
  get Config() {
    return approvalSchema()
  },
  apply(ctx: Context, config: ApprovalConfig) {
    const permissions = new LoggedPermissions(config, ctx.sandboxPolicy)
    const asking = new Asking(ctx, config, permissions)
    const judge = new Judge(ctx, permissions)
    declareEvents(ctx)
    ctx.provide('permissions', permissions)
    ctx.provide('approval', asking)
    ctx.effect(() => () => asking.close(), 'open questions')
    enforce(ctx, judge)
    ctx.get('systemPrompt')?.context({
      name: 'permissions',
      order: 110,
      text: ({ agent }) => describePermissions(permissions, agent?.session, config),
    })
  },
}
