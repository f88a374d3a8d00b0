import type { JsonValue } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import { readThrown } from '../../core/tools/index.ts'
import type { ToolEffect } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { SandboxExecutionPolicy, SandboxMode, SandboxReadiness } from '../sandbox/index.ts'
import { deedOf } from './deed.ts'
import type { Deed } from './deed.ts'
import { judgeDeed } from './judge-deed.ts'
import { namedHosts } from './named-hosts.ts'
import type { RulesFile } from './rules-file.ts'
import { inForce, isWithin } from './rules-in-force.ts'
import type { StoredRule } from './rules-in-force.ts'
import { sessionGrants } from './session-grants.ts'
import { allowed, judgeAll } from './verdict.ts'
import type { Circumstances, Verdict } from './verdict.ts'

export interface JudgeRequest {
  readonly name: string
  readonly arguments: JsonValue
  readonly parent?: symbol
  readonly agent?: Agent
  readonly session: Session | undefined
  readonly signal?: AbortSignal
}

/** What was found of a call, and the mode it was found in. */
export interface Judgement {
  readonly verdict: Verdict
  readonly mode: SandboxMode
  /** The files it would write, links resolved. */
  readonly paths: readonly string[]
}

const effectKinds = ['write', 'command', 'fetch', 'foreign', 'program'] satisfies ToolEffect['kind'][]
const noSandboxReason = 'no sandbox is loaded'

/** Looks up all that the judgement of a call depends on. Starts nothing but the first look at the sandbox. */
export class Judge {
  readonly #ctx: Context
  readonly #file: RulesFile | undefined
  readonly #told = new Set<string>()
  #readiness: SandboxReadiness | undefined

  constructor(ctx: Context, file: RulesFile | undefined) {
    this.#ctx = ctx
    this.#file = file
  }

  /** Undefined as long as nothing was judged that a sandbox would hold. */
  get knownReadiness(): SandboxReadiness | undefined {
    return this.#readiness
  }

  async readiness(): Promise<SandboxReadiness> {
    const sandbox = this.#ctx.get('sandbox')
    this.#readiness = (await sandbox?.readiness()) ?? { isReady: false, reason: noSandboxReason }
    return this.#readiness
  }

  async judge(request: JudgeRequest): Promise<Judgement> {
    const { session, signal } = request
    const mode = this.#ctx.sandboxPolicy.modeOf(session)
    const effects = await this.#effectsOf(request)
    if ('problem' in effects) return { verdict: unclear(request.name, mode, effects), mode, paths: [] }
    if (effects.length === 0) return { verdict: allowed, mode, paths: [] }
    const deeds: Deed[] = []
    for (const effect of effects) {
      const deed = await deedOf(this.#ctx, effect, session, signal)
      if (deed !== undefined) deeds.push(deed)
    }
    const circumstances = await this.#circumstances(request, deeds, mode)
    const verdict = judgeAll(deeds.map(deed => judgeDeed(deed, circumstances)))
    return { verdict, mode, paths: deeds.flatMap(deed => (deed.kind === 'write' ? [deed.path] : [])) }
  }

  /** The effects, or why they cannot be told. */
  async #effectsOf(request: JudgeRequest): Promise<readonly ToolEffect[] | { readonly problem: string }> {
    try {
      const { name, arguments: args, parent, agent } = request
      const call = { name, arguments: args, ...(parent && { parent }), ...(agent && { agent }) }
      const effects = await this.#ctx.tools.effectsOf(call)
      const strange = effects.find(({ kind }) => !effectKinds.includes(kind))
      if (strange === undefined) return effects
      return { problem: `it names an effect of the unknown kind "${String(strange.kind)}"` }
    } catch (error) {
      return { problem: readThrown(error).message }
    }
  }

  async #circumstances(
    { session, agent }: JudgeRequest,
    deeds: readonly Deed[],
    mode: SandboxMode,
  ): Promise<Circumstances> {
    const policy = await this.#ctx.sandboxPolicy.resolve({ session })
    const isRun = deeds.some(({ kind }) => kind === 'command' || kind === 'program')
    const sandbox = isRun ? await this.readiness() : { isReady: false as const, reason: '' }
    if (isRun && !sandbox.isReady && mode !== 'full-access')
      this.#ctx.emit('approval/unconfined', agent, sandbox.reason)
    const isFetched = deeds.some(({ kind }) => kind === 'fetch')
    return {
      mode,
      sandbox,
      rules: await this.#rulesFor(session, policy),
      workspace: policy.workspaceRoot,
      namedHosts: (isFetched ? session?.fold(namedHosts) : undefined) ?? new Set(),
      // A folder is read with all that lies in it.
      mayReachSecrets: path =>
        this.#ctx.sandboxPolicy.readRefusal(policy, path) !== undefined ||
        policy.unreadablePaths.some(secret => isWithin(path, secret)),
      isProtectedBelow: (folder, path) => {
        const root = folder === '/' ? folder : folder.replace(/\/+$/, '')
        const inside = {
          ...policy,
          mode: 'workspace-write',
          workspaceRoot: root,
          writableRoots: [root],
        } as const
        return this.#ctx.sandboxPolicy.writeRefusal(inside, path) !== undefined
      },
    }
  }

  async #rulesFor(
    session: Session | undefined,
    { workspaceRoot }: SandboxExecutionPolicy,
  ): Promise<readonly StoredRule[]> {
    const filed = (await this.#file?.read()) ?? { rules: [], problems: [] }
    for (const problem of filed.problems) this.#tell(problem)
    const granted = session?.fold(sessionGrants).map(rule => ({ rule })) ?? []
    return [...inForce(filed.rules, workspaceRoot), ...granted]
  }

  #tell(problem: string): void {
    if (this.#told.has(problem)) return
    this.#told.add(problem)
    this.#ctx.fiber.report(new Error(problem), 'permission rules')
  }
}

/** What nobody can tell is never let through: it is asked for where the mode asks, and refused elsewhere. */
function unclear(name: string, mode: SandboxMode, found: { readonly problem: string }): Verdict {
  const because = `what ${name} would do cannot be told: ${found.problem}`
  if (mode === 'workspace-write') return { decision: 'ask', because, isEscape: true }
  return { decision: 'deny', because }
}
