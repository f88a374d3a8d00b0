import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { JsonValue, UserMessage } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { cutText } from '../../core/tools/index.ts'
import { messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { decodeHook, mergeOutputs } from './codec.ts'
import type { HookOutput, MergedOutput } from './codec.ts'
import type { HooksConfig } from './config.ts'
import { guardedPoints } from './events.ts'
import type { HookDecision, HookPoint } from './events.ts'
import type { HookHandler } from './hook-file.ts'
import { HookFiles } from './hook-files.ts'
import type { TellNotice } from './hook-files.ts'
import { hasNames, namesOf, payloadText } from './payload.ts'
import type { Occasion } from './payload.ts'
import { runHook } from './run-hook.ts'
import type { HookRun } from './run-hook.ts'
import { sourcesOf } from './sources.ts'
import { bounded, failedText, failureHint, noReason, stoppedText, unusableText } from './text.ts'

export interface HookMoment {
  /** Undefined outside of a turn: then nothing is logged. */
  readonly turn: number | undefined
  readonly signal: AbortSignal
}

export interface HookOutcome extends MergedOutput {
  /** Of each hook that gave any, in order. */
  readonly contextsById: readonly { readonly id: string; readonly text: string }[]
  /** Whose updated input it is. */
  readonly updatedBy: HookHandler | undefined
}

export interface SessionHooksPlace {
  readonly agent: Agent
  readonly config: HooksConfig
  readonly tell: TellNotice
}

const shownStderrBytes = 500
const keptProposals = 20
const nothing = { exitCode: undefined, stdout: '', stderr: '', durationMs: 0 }

/** The hooks of one session, and what they asked for so far. */
export class SessionHooks {
  readonly agent: Agent
  readonly tell: TellNotice
  /** How often hooks may keep one turn from ending. */
  readonly maxStopRounds: number
  /** Whether its start was told to hooks. */
  hasBegun = false
  /** Of the start of the session, for the first request. */
  readonly waiting: UserMessage[] = []
  /** Settles when the files were looked at last. */
  loading: Promise<void> = Promise.resolve()
  /** A hook wants no more of this turn. */
  stop: { readonly reason: string | undefined } | undefined
  readonly #ctx: Context
  readonly #config: HooksConfig
  readonly #files: HookFiles
  /** Arguments that hooks gave in place of others, and that nobody used yet. */
  readonly #proposals: { readonly name: string; readonly args: unknown }[] = []
  #rounds = { turn: 0, count: 0 }

  constructor(ctx: Context, { agent, config, tell }: SessionHooksPlace) {
    const folder = agent.session.header.cwd
    this.agent = agent
    this.maxStopRounds = config.maxStopRounds
    this.#ctx = ctx
    this.#config = config
    this.tell = tell
    this.#files = new HookFiles(ctx, { folder, sources: sourcesOf(config, folder), config, tell })
  }

  /** Takes up what changed in the files. */
  async refresh(): Promise<void> {
    await this.#files.refresh()
  }

  has(point: HookPoint): boolean {
    return this.#files.handlers.some(handler => handler.point === point)
  }

  /** How often hooks kept this turn going. */
  roundsOf(turn: number): number {
    return this.#rounds.turn === turn ? this.#rounds.count : 0
  }

  countRound(turn: number): void {
    this.#rounds = { turn, count: this.roundsOf(turn) + 1 }
  }

  /** Ends the turn for a hook that wants no more of it; what waits in the queue stays. */
  endTurn(reason: string | undefined): void {
    this.tell('HOOK_DECIDED', stoppedText(reason))
    this.agent.cancel({ kind: 'hook', reason: bounded(reason ?? noReason) }, { keepInbox: true })
  }

  propose(name: string, args: unknown): void {
    this.#proposals.push({ name, args })
    if (this.#proposals.length > keptProposals) this.#proposals.shift()
  }

  /** Whether a hook itself gave these arguments; it counts once. */
  takeProposal(name: string, args: JsonValue): boolean {
    const at = this.#proposals.findIndex(each => each.name === name && isDeepStrictEqual(each.args, args))
    if (at >= 0) this.#proposals.splice(at, 1)
    return at >= 0
  }

  /**
   * Runs the hooks that `occasion` is for, all at once and each command once. Never rejects for what a hook does; messages
   * for the person are told.
   */
  async run(occasion: Occasion, moment: HookMoment): Promise<HookOutcome> {
    const handlers = this.#handlersFor(occasion)
    const outputs = await Promise.all(handlers.map(handler => this.#runOne(handler, occasion, moment)))
    const merged = mergeOutputs(outputs)
    for (const message of merged.messages) this.tell('HOOK_MESSAGE', bounded(message))
    return {
      ...merged,
      contextsById: outputs.flatMap(({ additionalContext: text }, index) =>
        text === undefined ? [] : [{ id: handlers[index]?.id ?? '', text }],
      ),
      updatedBy: handlers[outputs.findIndex(({ updatedInput }) => updatedInput !== undefined)],
    }
  }

  #handlersFor(occasion: Occasion): readonly HookHandler[] {
    const names = namesOf(occasion)
    const seen = new Set<string>()
    return this.#files.handlers.filter(({ id, point, matches, command, dialect, env, unusable }) => {
      if (point !== occasion.point || (hasNames(point) && !matches(names))) return false
      const key = JSON.stringify(unusable === undefined ? [dialect.name, env, command] : id)
      const isFirst = !seen.has(key)
      seen.add(key)
      return isFirst
    })
  }

  async #runOne(handler: HookHandler, occasion: Occasion, moment: HookMoment): Promise<HookOutput> {
    const { session } = this.agent
    const { turn } = moment
    const { point } = occasion
    const common = turn === undefined ? undefined : { id: randomUUID(), turn, point, handlerId: handler.id }
    if (common !== undefined)
      session.append('hook/invoked', {
        ...common,
        dialect: handler.dialect.name,
        ...(hasNames(point) && handler.matcher !== undefined && { matcher: handler.matcher }),
      })
    const run = await this.#spawn(handler, occasion, moment).catch((error: unknown): HookRun => {
      const problem = messageOf(error)
      return { ...nothing, isCancelled: moment.signal.aborted, problem }
    })
    const decoded = decodeHook(run, point, handler.dialect)
    const problem = run.problem ?? decoded.problem
    const output = this.#judge(handler, { ...decoded, ...(problem !== undefined && { problem }) }, run)
    if (common !== undefined) session.append('hook/result', { ...common, ...resultOf(run, output) })
    return output
  }

  async #spawn(handler: HookHandler, occasion: Occasion, { turn, signal }: HookMoment): Promise<HookRun> {
    if (handler.unusable !== undefined) return { ...nothing, isCancelled: false, problem: handler.unusable }
    const { agent } = this
    const { session } = agent
    const policy = await this.#ctx.sandboxPolicy.resolve({ session })
    const folder = session.header.cwd ?? policy.workspaceRoot
    return await runHook(this.#ctx, handler, {
      payload: payloadText(occasion, { agent, folder, mode: policy.mode, turn }, handler.dialect),
      policy,
      folder,
      timeoutMs: handler.timeoutMs ?? this.#config.timeoutMs,
      signal,
      mayBeUnconfined: this.#config.unconfined,
    })
  }

  /** A hook that was to decide and failed decides as the configuration says. */
  #judge({ id, point, unusable }: HookHandler, output: HookOutput, { isCancelled }: HookRun): HookOutput {
    const { problem } = output
    if (problem === undefined) return output
    // That it is so was told when its file was read.
    if (unusable !== undefined) return { ...output, decision: 'deny', reason: unusableText(id, unusable) }
    const text = failedText(id, bounded(problem))
    const isDenial = guardedPoints.has(point) && this.#config.onFailure === 'deny'
    if (!isCancelled) this.tell('HOOK_FAILED', isDenial ? `${text}${failureHint}` : text)
    return isDenial ? { ...output, decision: 'deny', reason: text } : output
  }
}

function resultOf({ exitCode, stderr, isCancelled, durationMs }: HookRun, output: HookOutput) {
  const summary = cutText(stderr.trim(), shownStderrBytes)
  const { problem } = output
  return {
    decision: decisionOf(output, isCancelled),
    ...(exitCode !== undefined && { exitCode }),
    ...(summary !== '' && { stderrSummary: summary }),
    ...(problem !== undefined && { problem: cutText(problem, shownStderrBytes) }),
    durationMs,
  }
}

function decisionOf({ stop, decision, problem }: HookOutput, isCancelled: boolean): HookDecision {
  if (isCancelled) return 'cancelled'
  if (stop !== undefined) return 'stop'
  return decision ?? (problem === undefined ? 'none' : 'failed')
}
