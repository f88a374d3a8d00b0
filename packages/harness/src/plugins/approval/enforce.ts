import type { ToolExecution } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { FsError } from '../fs/index.ts'
import type { FsActor, FsTarget } from '../fs/index.ts'
import type { SandboxMode } from '../sandbox/index.ts'
import type { Judge } from './judge.ts'
import { allowed } from './verdict.ts'
import type { Judgement } from './verdict.ts'

interface JudgedCall extends Judgement {
  /** Whether somebody allowed what was asked. */
  isAnswered: boolean
}

/** By the token of the execution. */
export type JudgedCalls = WeakMap<symbol, JudgedCall>

const unjudgedText = 'the call was not put to the permission mode'
const unansweredText = 'the call needs an approval that nobody gave'
const narrowerText = (mode: SandboxMode): string =>
  `the permission mode became ${mode} while the call waited; make it again if it still serves`
const elsewhereText = (path: string): string =>
  `${path} leads elsewhere than when it was allowed; look at it again`

/**
 * Puts each call to `judge` before it runs. A guard says no again where a listener let go through what was refused or
 * what nobody allowed, or kept the call from being judged at all.
 */
export function enforce(ctx: Context, judge: Judge, calls: JudgedCalls): void {
  ctx.on(
    'tools/pre-execute',
    async (execution, next) => {
      const { token, agent } = execution
      const judgement = await judge.judge({ ...execution, session: agent?.session })
      calls.set(token, { ...judgement, isAnswered: false })
      const { decision, because, grant } = judgement.verdict
      if (decision === 'deny') return { kind: 'deny', reason: because }
      if (decision === 'allow' && grant !== undefined) ctx.sandboxPolicy.grant(token, grant)
      const others = await next()
      if (decision === 'allow' || others.kind === 'deny') return others
      if (others.kind === 'allow' || others.reason === undefined) return { kind: 'ask', reason: because }
      return { kind: 'ask', reason: `${because}; ${others.reason}` }
    },
    { prepend: true },
  )
  ctx.tools.guard(execution => {
    const call = calls.get(execution.token)
    if (call === undefined) return mayDoNothing(ctx, execution) ? undefined : unjudgedText
    const { verdict, mode, isAnswered } = call
    if (verdict === allowed) return undefined
    if (verdict.decision === 'deny') return verdict.because
    // An answer can take long.
    const now = ctx.sandboxPolicy.modeOf(execution.agent?.session)
    if (modeRank[now] < modeRank[mode]) return narrowerText(now)
    return verdict.decision === 'ask' && !isAnswered ? unansweredText : undefined
  })
}

const modeRank: Readonly<Record<SandboxMode, number>> = {
  'read-only': 0,
  'workspace-write': 1,
  'full-access': 2,
}

/** Whether nothing that a permission speaks of can come of the call. */
function mayDoNothing(ctx: Context, { name, agent }: ToolExecution): boolean {
  const tool = ctx.tools.get(name, agent ?? null)
  return tool !== undefined && tool.effects === undefined
}

/** A write that goes further than its mode reaches the very file that was judged, whatever its path leads to by now. */
export function bindToPaths(ctx: Context, calls: JudgedCalls): void {
  const check = (target: FsTarget, { token }: FsActor): void => {
    const call = token === undefined ? undefined : calls.get(token)
    if (call?.verdict.grant === undefined || call.paths.length === 0) return
    if (!call.paths.includes(ctx.fs.processPath(target)))
      throw new FsError('FS_SANDBOX_DENIED', elsewhereText(target.displayPath))
  }
  ctx.on(
    'fs/write-intent',
    async (target, actor, next) => {
      check(target, actor)
      return await next()
    },
    { prepend: true },
  )
  ctx.on(
    'fs/edit-intent',
    async (target, actor, next) => {
      check(target, actor)
      return await next()
    },
    { prepend: true },
  )
}
