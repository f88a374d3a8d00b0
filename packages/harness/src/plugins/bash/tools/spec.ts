import { isAbsolute, join } from 'node:path'
import { scopeTarget } from '../../../core/scope/index.ts'
import { ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolRunContext, WiderAccess } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type { SandboxExecutionPolicy } from '../../sandbox/index.ts'
import { BashError } from '../errors.ts'
import type { BashSpec } from '../service.ts'

export interface BashArguments {
  readonly command: string
  readonly description: string
  readonly timeoutMs?: number
  readonly workdir?: string
  readonly run_in_background?: boolean
  readonly sandbox_permissions?: WiderAccess
  readonly justification?: string
}

/** What the call asks for beyond the mode of its session. Throws INVALID_ARGS for half of a request. */
function wantsOf({ sandbox_permissions: access, justification }: BashArguments) {
  if (access === undefined && justification === undefined) return undefined
  if (access === undefined) throw new ToolArgsError(['sandbox_permissions: is missing beside justification'])
  if (justification === undefined || justification.trim() === '')
    throw new ToolArgsError(['justification: is missing beside sandbox_permissions'])
  return { access, justification }
}

/** The command line of one call under the policy of this very call; fields are picked by name. */
export async function specOf(ctx: Context, args: BashArguments, exec: ToolRunContext): Promise<BashSpec> {
  const { command, timeoutMs, workdir } = args
  if (command.trim() === '') throw new ToolArgsError(['command: is blank'])
  if (command.includes('\0')) throw new ToolArgsError(['command: has a NUL character'])
  if (timeoutMs !== undefined && timeoutMs <= 0)
    throw new ToolArgsError([`timeoutMs: must be more than 0, not ${timeoutMs}`])
  const wants = wantsOf(args)
  const { agent, callId, signal, token } = exec
  const folder = workdirOf(agent?.session.header.cwd, workdir)
  const spec = ctx.bash.resolve({
    command,
    ...(folder === undefined ? {} : { workdir: folder }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  const policy = await ctx.get('sandboxPolicy')?.resolve({ session: agent?.session, token })
  if (wants !== undefined && !covers(policy, wants.access))
    throw new BashError('ESCALATION_UNAVAILABLE', `${wants.access} was not granted to this call`)
  const carrier = scopeTarget(agent)
  return {
    ...spec,
    signal,
    policy,
    env: ctx.bashEnv.collect(exec),
    onOutput: (stream, text) => ctx.emit(carrier, 'bash/output', { agent, callId, stream, text }),
  }
}

function covers(policy: SandboxExecutionPolicy | undefined, access: WiderAccess): boolean {
  if (policy === undefined) return false
  if (policy.mode === 'full-access') return true
  if (access === 'full-access') return false
  return policy.mode === 'workspace-write' && (access !== 'network' || policy.network)
}

function workdirOf(cwd: string | undefined, workdir: string | undefined): string | undefined {
  if (workdir === undefined || workdir === '') return cwd
  if (isAbsolute(workdir)) return workdir
  if (cwd === undefined)
    throw new ToolArgsError([`workdir: "${workdir}" is not absolute, and there is no session`])
  return join(cwd, workdir)
}
