import type { Context } from '../../kernel/index.ts'
import { approvalEventSchemas } from './events.ts'
import type { ApprovalEventType } from './events.ts'

/** Lets logs hold the events of approvals, as long as the plugin is there. */
export function declareEvents(ctx: Context): void {
  let schemas: ReturnType<typeof approvalEventSchemas> | undefined
  for (const type of eventTypes) {
    ctx.sessions.registerEventType({
      type,
      ...(type === 'approval/forgotten' && { ignorable: true }),
      validate(data) {
        schemas ??= approvalEventSchemas()
        const { error } = schemas[type].safeParse(data)
        const [issue] = error?.issues ?? []
        if (issue !== undefined) throw new TypeError(`${issue.path.join('.') || 'data'}: ${issue.message}`)
      },
    })
  }
}

const eventTypes: readonly ApprovalEventType[] = [
  'approval/asked',
  'approval/decided',
  'approval/policy',
  'approval/forgotten',
]
