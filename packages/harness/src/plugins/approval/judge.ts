import { relative } from 'node:path'
import type { JsonValue } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import type { PreToolDecision, ToolExecution } from '../../core/tools/index.ts'
import { isFields } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { FsTarget } from '../fs/index.ts'
import type { ApprovalConfig } from './config.ts'
import { isProtected } from './protected.ts'
import type { Permissions } from './service.ts'

/** What a tool does to the world, by the tool's name; others do nothing that a mode speaks of. */
const effects: Readonly<Record<string, 'file' | 'command'>> = { write: 'file', edit: 'file', bash: 'command' }

const readOnlyText = (toolName: string): string =>
  `${toolName} is refused in read-only mode; tell the user what you would do`
const outsideText = (path: string, root: string): string =>
  `${path} is outside of the workspace ${root}; write below it, or tell the user what to change`
const noWorkspaceText = (path: string): string => `${path} cannot be written: the session has no workspace`
const protectedText = (path: string): string =>
  `${path} is protected; leave it as it is and tell the user what to change`
const askText = 'each command is asked for in workspace-write mode'
export const unjudgedText = 'the call was not put to the permission mode'

const allow: PreToolDecision = { kind: 'allow' }

/** Decides by the permission mode what a call may do. */
export class Judge {
  readonly #ctx: Context
  readonly #config: ApprovalConfig
  readonly #permissions: Permissions

  constructor(ctx: Context, config: ApprovalConfig, permissions: Permissions) {
    this.#ctx = ctx
    this.#config = config
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
    const { name, agent, arguments: args, signal } = execution
    const reason = this.refusal(execution)
    if (reason !== undefined) return { kind: 'deny', reason }
    if (!this.isLimited(execution)) return allow
    if (effects[name] === 'command') return { kind: 'ask', reason: askText }
    const outside = await this.#pathRefusal(pathOf(args), agent?.session, signal)
    return outside === undefined ? allow : { kind: 'deny', reason: outside }
  }

  /** Why a session may not change `target` in its mode. */
  async targetRefusal(target: FsTarget, session: Session | undefined): Promise<string | undefined> {
    const mode = this.#permissions.modeOf(session)
    if (mode === 'full-access') return undefined
    if (mode === 'read-only') return readOnlyText('writing')
    const { displayPath: path } = target
    const cwd = this.#workspaceOf(session)
    if (cwd === undefined) return noWorkspaceText(path)
    const root = await this.#ctx.fs.resolve(cwd)
    if (!(await this.#ctx.fs.contains(root, target))) return outsideText(path, cwd)
    const { fs } = this.#ctx
    // Both ways to it count: the name that was asked for, and where its links lead.
    const paths = [relative(cwd, path), relative(fs.processPath(root), fs.processPath(target))]
    return paths.some(each => !each.startsWith('..') && isProtected(each)) ? protectedText(path) : undefined
  }

  async #pathRefusal(
    path: string | undefined,
    session: Session | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const cwd = this.#workspaceOf(session)
    // What the tool itself will refuse is no matter of permission.
    if (path === undefined || path.trim() === '') return undefined
    if (cwd === undefined) return noWorkspaceText(path)
    return await this.targetRefusal(await this.#ctx.fs.resolve(path, { cwd, signal }), session)
  }

  #workspaceOf(session: Session | undefined): string | undefined {
    return session?.header.cwd ?? this.#config.cwd
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
