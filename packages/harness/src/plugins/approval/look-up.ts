import { resolve } from 'node:path'
import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { ToolEffect } from '../../core/tools/index.ts'
import { isWithin } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { SandboxMode, SandboxReadiness } from '../sandbox/index.ts'
import { deedOf } from './deed.ts'
import type { Deed } from './deed.ts'
import { judgeDeed } from './judge-deed.ts'
import { namedHosts } from './named-hosts.ts'
import type { RulesFileState } from './rules-file.ts'
import { isInForce } from './rules-in-force.ts'
import { sessionGrants } from './session-grants.ts'
import { judgeAll } from './verdict.ts'
import type { Circumstances, Judgement } from './verdict.ts'

export interface Surroundings {
  readonly ctx: Context
  readonly mode: SandboxMode
  readonly session: Session | undefined
  readonly agent: Agent | undefined
  readonly signal: AbortSignal | undefined
  /** The folder of the rules file. */
  readonly home: string | undefined
  readiness(): Promise<SandboxReadiness>
  filed(): Promise<RulesFileState>
}

/** Looks up all that the judgement of `effects` depends on, and judges them. */
export async function lookUp(effects: readonly ToolEffect[], around: Surroundings): Promise<Judgement> {
  const { ctx, mode, session, signal } = around
  const deeds: Deed[] = []
  for (const effect of effects) {
    const deed = await deedOf(ctx, effect, session, signal)
    if (deed !== undefined) deeds.push(deed)
  }
  const circumstances = await circumstancesOf(deeds, around)
  const verdict = judgeAll(deeds.map(deed => judgeDeed(deed, circumstances)))
  return { verdict, mode, paths: deeds.flatMap(deed => (deed.kind === 'write' ? [deed.path] : [])) }
}

async function circumstancesOf(deeds: readonly Deed[], around: Surroundings): Promise<Circumstances> {
  const { ctx, mode, session } = around
  const { sandboxPolicy } = ctx
  const policy = await sandboxPolicy.resolve({ session })
  const { rules } = await around.filed()
  const granted = session?.fold(sessionGrants).map(rule => ({ rule })) ?? []
  const isFetched = deeds.some(({ kind }) => kind === 'fetch')
  return {
    mode,
    sandbox: await sandboxFor(deeds, around),
    rules: [...rules.filter(({ rule }) => isInForce(rule, policy.workspaceRoot)), ...granted],
    workspace: policy.workspaceRoot,
    namedHosts: (isFetched ? session?.fold(namedHosts) : undefined) ?? new Set(),
    // A folder is read with all that lies in it.
    mayReachSecrets: path =>
      sandboxPolicy.readRefusal(policy, path) !== undefined ||
      policy.unreadablePaths.some(secret => isWithin(resolve(path), secret)),
    isProtected: path => {
      const anywhere = {
        ...policy,
        mode: 'workspace-write',
        workspaceRoot: '/',
        writableRoots: ['/'],
      } as const
      return sandboxPolicy.writeRefusal(anywhere, path) !== undefined
    },
    isOwn: path => around.home !== undefined && isWithin(resolve(around.home), path),
  }
}

/** Looked at only where something runs, since to look takes a process the first time. */
async function sandboxFor(
  deeds: readonly Deed[],
  { ctx, agent, mode, readiness }: Surroundings,
): Promise<SandboxReadiness> {
  if (!deeds.some(({ kind }) => kind === 'command' || kind === 'program'))
    return { isReady: false, reason: '' }
  const sandbox = await readiness()
  if (!sandbox.isReady && mode !== 'full-access') ctx.emit('approval/unconfined', agent, sandbox.reason)
  return sandbox
}
