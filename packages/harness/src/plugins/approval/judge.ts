import type { JsonValue } from '@dsh/protocol'
import type { PreToolDecision, ToolExecution } from '../../core/tools/index.ts'
import { isFields } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { changeRefusal } from '../sandbox/index.ts'
import type { Permissions } from './service.ts'

/** What a tool does to the world, by the tool's name; others do nothing that a mode speaks of. */
const effects: Readonly<Record<string, 'file' | 'command'>> = { write: 'file', edit: 'file', bash: 'command' }

const readOnlyText = (toolName: string): string =>
  `${toolName} is refused in read-only mode; tell the user what you would do`
const askText = 'each command is asked for in workspace-write mode'
export const unjudgedText = 'the call was not put to the permission mode'

const allow: PreToolDecision = { kind: 'allow' }

/** Decides by the permission mode what a call may do. */
export class Judge {
  readonly #ctx: Context
  readonly #permissions: Permissions

  constructor(ctx: Context, permissions: Permissions) {
    this.#ctx = ctx
    this.#permissions = permissions
  }

  /** A refusal that needs no look at the world. */
  refusal(execution: ToolExecution): string | undefined {
    const mode = this.#permissions.modeOf(execution.agent?.session)
    return mode === 'read-only' && isMutation(execution) ? readOnlyText(execution.name) : undefined
  }

  /** Whether the call may run only after `decide`. */
  isLimited(execution: ToolExecution): boolean {
    return isMutation(execution) && this.#permissions.modeOf(execution.agent?.session) !== 'full-access'
  }

  async decide(execution: ToolExecution): Promise<PreToolDecision> {
    const { name, arguments: args } = execution
    const reason = this.refusal(execution)
    if (reason !== undefined) return { kind: 'deny', reason }
    if (!this.isLimited(execution)) return allow
    if (effects[name] === 'command') return { kind: 'ask', reason: askText }
    const outside = await this.#pathRefusal(pathOf(args), execution)
    return outside === undefined ? allow : { kind: 'deny', reason: outside }
  }

  async #pathRefusal(
    path: string | undefined,
    { agent, token, signal }: ToolExecution,
  ): Promise<string | undefined> {
    // What the tool itself will refuse is no matter of permission.
    if (path === undefined || path.trim() === '') return undefined
    const { workspaceRoot } = await this.#ctx.sandboxPolicy.resolve({ session: agent?.session })
    const cwd = agent?.session.header.cwd ?? workspaceRoot
    const target = await this.#ctx.fs.resolve(path, { cwd, signal })
    return await changeRefusal(this.#ctx, target, { ...(agent && { agent }), token })
  }
}

function isMutation({ name }: ToolExecution): boolean {
  return Object.hasOwn(effects, name)
}

function pathOf(args: JsonValue): string | undefined {
  if (!isFields(args)) return undefined
  const { file_path: path } = args
  return typeof path === 'string' ? path : undefined
}
