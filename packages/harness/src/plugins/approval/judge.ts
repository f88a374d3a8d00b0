import type { JsonValue } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import { readThrown } from '../../core/tools/index.ts'
import type { ToolEffect } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { SandboxMode, SandboxReadiness } from '../sandbox/index.ts'
import type { OpenRules } from './rules-file.ts'
import { allowed } from './verdict.ts'
import type { Judgement, Verdict } from './verdict.ts'

export interface JudgeRequest {
  readonly name: string
  readonly arguments: JsonValue
  readonly parent?: symbol
  readonly agent?: Agent
  readonly session: Session | undefined
  readonly signal?: AbortSignal
}

interface JudgeParts {
  readonly openRules: OpenRules | undefined
  /** The folder of the rules file. */
  readonly home: string | undefined
}

const effectKinds = ['write', 'command', 'fetch', 'foreign', 'program'] satisfies ToolEffect['kind'][]
const noSandboxReason = 'no sandbox is loaded'

/**
 * Judges calls by what they would do. Starts nothing but the first look at the sandbox; how deeds are judged is loaded
 * with the first call that does any.
 */
export class Judge {
  readonly #ctx: Context
  readonly #openRules: OpenRules | undefined
  readonly #home: string | undefined
  readonly #told = new Set<string>()
  #readiness: SandboxReadiness | undefined

  constructor(ctx: Context, { openRules, home }: JudgeParts) {
    this.#ctx = ctx
    this.#openRules = openRules
    this.#home = home
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
    const mode = this.#ctx.sandboxPolicy.modeOf(request.session)
    const effects = await this.#effectsOf(request)
    if ('problem' in effects) return { verdict: unclear(request.name, mode, effects), mode, paths: [] }
    if (effects.length === 0) return { verdict: allowed, mode, paths: [] }
    const { lookUp } = await import('./look-up.ts')
    const { session, signal, agent } = request
    return await lookUp(effects, {
      ctx: this.#ctx,
      mode,
      session,
      agent,
      signal,
      home: this.#home,
      readiness: () => this.readiness(),
      filed: async () => await this.#filed(),
    })
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

  async #filed(): ReturnType<Awaited<ReturnType<OpenRules>>['read']> {
    const state = (await (await this.#openRules?.())?.read()) ?? { revision: 0, rules: [], problems: [] }
    for (const problem of state.problems) {
      if (!this.#told.has(problem)) this.#ctx.fiber.report(new Error(problem), 'permission rules')
      this.#told.add(problem)
    }
    return state
  }
}

/** What nobody can tell is never let through: it is asked for where the mode asks, and refused elsewhere. */
function unclear(name: string, mode: SandboxMode, found: { readonly problem: string }): Verdict {
  const because = `what ${name} would do cannot be told: ${found.problem}`
  if (mode === 'workspace-write') return { decision: 'ask', because, isEscape: true }
  return { decision: 'deny', because }
}
