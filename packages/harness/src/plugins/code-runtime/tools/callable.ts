import { codeToolName } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'

/** The tools that a program of `scope` may call, in code-unit order; deferred ones too. */
export function callableTools(ctx: Context, scope: object | undefined): readonly ToolDefinition[] {
  return [...ctx.tools.knownNames(scope ?? null)]
    .filter(name => name !== codeToolName)
    .toSorted()
    .map(name => ctx.tools.get(name, scope ?? null))
    .filter(tool => tool !== undefined)
}
