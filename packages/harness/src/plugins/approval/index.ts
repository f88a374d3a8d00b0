import { dirname } from 'node:path'
import type {} from '../../core/commands/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type {} from '../fs/index.ts'
import { permissionsCommand } from './command.ts'
import { approvalSchema } from './config.ts'
import type { ApprovalConfig, ApprovalInput } from './config.ts'
import { declareEvents } from './declare.ts'
import { describePermissions } from './describe.ts'
import { bindToPaths, enforce } from './enforce.ts'
import type { JudgedCalls } from './enforce.ts'
import { Judge } from './judge.ts'
import { LoggedApproval } from './logged-approval.ts'
import type { OpenRules, RulesFile } from './rules-file.ts'

export * from './events.ts'
export * from './service.ts'
export type { ApprovalConfig } from './config.ts'
export type { FiledRule, RulesFileState } from './rules-file.ts'
export { readRule, ruleText, subjectText } from './rule.ts'
export { isInForce } from './rules-in-force.ts'

/** Of a home folder; what keeps a person's rules. */
export const rulesFileName = 'permissions.json'

/** The rules of a person, for those who change them without a session. */
export async function openRulesFile(path: string): Promise<RulesFile> {
  const { RulesFile: File } = await import('./rules-file.ts')
  return new File(path)
}

/**
 * What tools may do without asking, what is asked, and what is refused, as `ctx.approval`.
 *
 * Each call is judged by its effects: a person's rules first, then the mode of its session, and whether a sandbox holds
 * what runs. What is asked goes to `approval/request`; an answer may count for the call, the session or, as a rule, for
 * the folder. A guard that no listener can overrule says it again, and the sandbox holds to it what runs.
 */
export const approval: PluginObject<ApprovalInput, ApprovalConfig> = {
  name: 'approval',
  inject: {
    required: ['sessions', 'tools', 'sandboxPolicy'],
    optional: ['fs', 'sandbox', 'systemPrompt', 'commands'],
  },
  get Config() {
    return approvalSchema()
  },
  apply(ctx: Context, config: ApprovalConfig) {
    const calls: JudgedCalls = new WeakMap()
    const { rules: path } = config
    const openRules = path === undefined ? undefined : opener(path)
    const judge = new Judge(ctx, { openRules, home: path === undefined ? undefined : dirname(path) })
    const service = new LoggedApproval(ctx, { config, judge, calls, openRules })
    declareEvents(ctx)
    ctx.provide('approval', service)
    ctx.effect(() => () => service.close(), 'open questions')
    enforce(ctx, judge, calls)
    bindToPaths(ctx, calls)
    ctx.get('commands')?.register(permissionsCommand(ctx))
    ctx.get('systemPrompt')?.context({
      name: 'permissions',
      order: 110,
      text: ({ agent }) =>
        describePermissions({
          mode: ctx.sandboxPolicy.modeOf(agent?.session),
          hasNetwork: ctx.sandboxPolicy.hasNetwork,
          sandbox: judge.knownReadiness,
          yes: config.yes,
          canAsk: service.canAnswer(agent),
        }),
    })
  },
}

function opener(path: string): OpenRules {
  let opened: Promise<RulesFile> | undefined
  return async () => await (opened ??= openRulesFile(path))
}
