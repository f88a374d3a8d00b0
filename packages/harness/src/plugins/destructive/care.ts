import { isAbsolute, join } from 'node:path'
import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import type {
  PostToolDecision,
  PreToolDecision,
  ToolDispatchExecution,
  ToolEffect,
  ToolExecution,
  ToolExecutionResult,
} from '../../core/tools/index.ts'
import { isWithin, messageOf, unlessAborted } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { KeptState } from '../rewind/index.ts'
import { destructionsOf, parseShell } from '../shell-command/index.ts'
import type { Destruction } from '../shell-command/index.ts'
import { readRefs } from './git-refs.ts'
import type { GitFolder } from './git-refs.ts'
import { stakeOf, withinWorkspace } from './stake.ts'
import type { Stake } from './stake.ts'
import {
  historyReason,
  keptText,
  largeReason,
  lostReasons,
  needsPersonText,
  noPointReason,
  noRewindText,
  outsideReason,
  refText,
  unkeptText,
} from './text.ts'

export interface DestructiveConfig {
  /** Nobody is asked, as what is asked is allowed: then what cannot be kept is refused but in full-access mode. */
  readonly yes: boolean
}

export type CommandEffect = Extract<ToolEffect, { kind: 'command' }>

interface Watched {
  readonly stake: Stake
  /** Why what is at stake cannot be brought back. */
  readonly reasons: readonly string[]
  kept?: KeptState | undefined
  refs?: readonly ReadonlyMap<string, string>[]
}

/** Follows each call that may destroy from before it is asked for to its result. */
export class Care {
  readonly #ctx: Context
  readonly #config: DestructiveConfig
  readonly #watched = new WeakMap<symbol, Watched>()

  constructor(ctx: Context, config: DestructiveConfig) {
    this.#ctx = ctx
    this.#config = config
  }

  /** Has asked for what `commands` would destroy and nothing could bring back. */
  async before(
    execution: ToolExecution,
    commands: readonly CommandEffect[],
    next: () => Promise<PreToolDecision>,
  ): Promise<PreToolDecision> {
    const session = execution.agent?.session
    const stake = session === undefined ? undefined : await this.#stakeOf(commands, session)
    const others = await next()
    if (session === undefined || stake === undefined || others.kind === 'deny') return others
    const reasons = await this.#reasons(execution, session, stake)
    this.#watched.set(execution.token, { stake, reasons })
    return reasons.length === 0 ? others : this.#decide(execution.agent, reasons, others)
  }

  /** Keeps what there is right before the body runs. */
  async around(
    execution: ToolDispatchExecution,
    next: () => Promise<ToolExecutionResult>,
  ): Promise<ToolExecutionResult> {
    const watched = this.#watched.get(execution.token)
    const session = execution.agent?.session
    if (watched === undefined || session === undefined) return await next()
    const { stake } = watched
    watched.refs = await Promise.all(stake.refs.map(({ git, names }) => readRefs(git, names)))
    if (isInside(stake)) watched.kept = await this.#keep(execution, session).catch(() => undefined)
    return await next()
  }

  /** Adds to the result what is kept, what is not, and what git had. */
  async after(
    execution: ToolExecution,
    result: ToolExecutionResult,
    next: () => Promise<PostToolDecision>,
  ): Promise<PostToolDecision> {
    const watched = this.#watched.get(execution.token)
    const decision = await next()
    const id = execution.agent?.session.id
    // Without refs the body was never reached.
    if (watched?.refs === undefined || id === undefined || decision.kind !== 'accept') return decision
    const lines = await linesOf(watched, id)
    if (lines.length === 0 || decision.value !== undefined) return decision
    const note = { type: 'text' as const, text: `\n${lines.join('\n')}` }
    return { ...decision, content: [...(decision.content ?? result.content), note] }
  }

  async #stakeOf(commands: readonly CommandEffect[], session: Session): Promise<Stake | undefined> {
    const { cwd } = session.header
    if (cwd === undefined) return undefined
    const all = await Promise.all(
      commands.map(async effect => {
        const program = await parseShell(effect.command)
        return program === undefined
          ? [unreadable(effect)]
          : destructionsOf(program, { cwd: folderOf(effect, cwd) })
      }),
    )
    const destructions = all.flat()
    if (destructions.length === 0) return undefined
    const stake = await stakeOf(destructions, cwd)
    if (stake === undefined || !(await this.#isConfined(commands, session))) return stake
    return withinWorkspace(stake)
  }

  async #isConfined(commands: readonly CommandEffect[], session: Session): Promise<boolean> {
    if (this.#ctx.sandboxPolicy.modeOf(session) === 'full-access') return false
    if (commands.some(({ wants }) => wants?.access === 'full-access')) return false
    return (await this.#ctx.get('sandbox')?.readiness())?.isReady === true
  }

  async #reasons(execution: ToolExecution, session: Session, stake: Stake): Promise<readonly string[]> {
    const { root, outside, histories, lost, named } = stake
    const reasons: string[] = lost.map(kind => lostReasons[kind])
    if (outside.length > 0) reasons.push(outsideReason(outside))
    if (histories.length > 0) reasons.push(historyReason(histories))
    if (!isInside(stake)) return reasons
    try {
      const { missing } = await this.#keep(execution, session)
      const large = missing.filter(path => named.some(each => isWithin(each, join(root, path))))
      if (large.length > 0) reasons.push(largeReason(large))
    } catch (error) {
      execution.signal.throwIfAborted()
      reasons.push(noPointReason(messageOf(error)))
    }
    return reasons
  }

  async #keep({ rootCallId, signal }: ToolDispatchExecution, session: Session): Promise<KeptState> {
    const rewind = this.#ctx.get('rewind')
    if (rewind === undefined) throw new TypeError(noRewindText)
    return await unlessAborted(rewind.keep(session, rootCallId), signal)
  }

  #decide(
    agent: Agent | undefined,
    reasons: readonly string[],
    others: Exclude<PreToolDecision, { kind: 'deny' }>,
  ): PreToolDecision {
    const own = reasons.join('; ')
    const isFree = this.#ctx.sandboxPolicy.modeOf(agent?.session) === 'full-access'
    const isAnybodyThere = !this.#config.yes && this.#ctx.get('approval')?.canAnswer(agent) === true
    // Whoever gave full access and left is told by the result.
    if (!isAnybodyThere) return isFree ? others : { kind: 'deny', reason: `${own}; ${needsPersonText}` }
    const said = others.kind === 'ask' && others.reason !== undefined ? `${others.reason}; ${own}` : own
    return { kind: 'ask', reason: said }
  }
}

function isInside({ isInside: isNamed, isOpen }: Stake): boolean {
  return isNamed || isOpen
}

/** Nobody knows what it does. */
function unreadable({ command }: CommandEffect): Destruction {
  return { kind: 'overwrite', command, paths: [], isDeep: false, isOpen: true }
}

function folderOf({ workdir }: CommandEffect, cwd: string): string {
  if (workdir === undefined || workdir === '') return cwd
  return isAbsolute(workdir) ? workdir : join(cwd, workdir)
}

async function linesOf({ stake, reasons, kept, refs = [] }: Watched, id: string): Promise<readonly string[]> {
  const changed = await Promise.all(
    stake.refs.map(({ git, names }, index) => movedRefs(git, names, refs[index])),
  )
  return [
    ...(kept === undefined ? [] : [keptText(id, kept, stake)]),
    ...(reasons.length === 0 ? [] : [unkeptText(reasons)]),
    ...changed.flat(),
  ]
}

/** One line for each name that does not point to its commit any more. */
async function movedRefs(
  git: GitFolder,
  names: readonly string[],
  before: ReadonlyMap<string, string> = new Map(),
): Promise<readonly string[]> {
  const now = await readRefs(git, names)
  return [...before].filter(([name, id]) => now.get(name) !== id).map(([name, id]) => refText(name, id))
}
