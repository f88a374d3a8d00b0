import type { Context } from '../../kernel/index.ts'
import { dispatchEventSchemas } from './events.ts'

/** Lets logs hold the calls of programs. A reader that does not know them may skip them: they reach no model. */
export function declareDispatchEvents(ctx: Context): void {
  let schemas: ReturnType<typeof dispatchEventSchemas> | undefined
  for (const type of ['tool/code-dispatch-start', 'tool/code-dispatch'] as const)
    ctx.sessions.registerEventType({
      type,
      ignorable: true,
      validate(data) {
        schemas ??= dispatchEventSchemas()
        const [issue] = schemas[type].safeParse(data).error?.issues ?? []
        if (issue !== undefined) throw new TypeError(`${issue.path.join('.') || 'data'}: ${issue.message}`)
      },
    })
}
