import type { JsonValue, UserMessage } from '@dsh/protocol'
import { CallId } from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import type { Carrier, Context } from '../../kernel/index.ts'
import { scopeTarget } from '../scope/index.ts'
import { settleDecision } from './approval.ts'
import { ToolError } from './errors.ts'
import { settlePost } from './post.ts'
import { scopeOfCall } from './registry.ts'
import type { ToolAddress, ToolRegistry } from './registry.ts'
import {
  abortFailure,
  failure,
  failureOf,
  toContent,
  toContext,
  toContexts,
  withContent,
  withContexts,
} from './result.ts'
import { fuseSignals } from './signal.ts'
import { wellFormed } from './text.ts'
import { isAbortOf } from './thrown.ts'
import type {
  PostToolDecision,
  PreToolDecision,
  ToolDefinition,
  ToolDispatchExecution,
  ToolExecutionFailure,
  ToolExecutionInput,
  ToolExecutionResult,
  ToolRunContext,
} from './tool.ts'

/** What came of a call so far. A final outcome is policy's last word too: post-execute is not asked. */
interface Outcome {
  readonly result: ToolExecutionResult
  readonly isFinal: boolean
}

/** One run of the body; a wrapper that retries makes several, and only the last one counts. */
interface Run {
  readonly contexts: UserMessage[]
  concludes: boolean
  isOver: boolean
}

const allow: PreToolDecision = { kind: 'allow' }
const accept: PostToolDecision = { kind: 'accept' }

/**
 * One call on its way through the pipeline: `prepare` asks policy, `dispatch` runs the body, `finish` gives the result.
 *
 * Each stage runs once, however often it is asked for, and none ever rejects. A body that started is awaited, also when
 * the caller gave up.
 */
export class ToolCall {
  /** What listeners are given; frozen with the result. Only wrappers of the dispatch may change it: its signal. */
  readonly exec: ToolDispatchExecution
  readonly #ctx: Context
  readonly #registry: ToolRegistry
  readonly #address: ToolAddress
  readonly #carrier: Carrier
  readonly #signal: AbortSignal
  readonly #finalizeContent: ToolDefinition['finalizeContent']
  /** Results that came from the body as they are. */
  readonly #canonical = new WeakSet<object>()
  #outcome: Outcome | undefined
  #run: Run | undefined
  #bodyInvoked = false
  #prepared: Promise<void> | undefined
  #dispatched: Promise<void> | undefined
  #finished: Promise<ToolExecutionResult> | undefined

  /** Used by `ToolRuntime.open`; not for plugins. */
  constructor(ctx: Context, registry: ToolRegistry, input: ToolExecutionInput) {
    const { exec, problem } = readInput(input)
    this.exec = exec
    this.#ctx = ctx
    this.#registry = registry
    this.#signal = exec.signal
    const scope = scopeOfCall(exec)
    this.#address = { name: exec.name, scope, isNested: exec.parent !== undefined }
    this.#carrier = scopeTarget(scope)
    this.#finalizeContent = registry.find(this.#address)?.finalizeContent
    if (problem !== undefined) this.#settle(failureOf(problem), { isFinal: true })
  }

  get bodyInvoked(): boolean {
    return this.#bodyInvoked
  }

  /** Asks pre-execute listeners, approval and guards, in this order. */
  prepare(): Promise<void> {
    this.#prepared ??= this.#prepare()
    return this.#prepared
  }

  /** Runs wrappers and body unless the call is decided already. */
  dispatch(): Promise<void> {
    this.#dispatched ??= this.#dispatch()
    return this.#dispatched
  }

  /** Asks post-execute listeners, bounds the content and tells the result. A call that was not dispatched has failed. */
  finish(): Promise<ToolExecutionResult> {
    this.#finished ??= this.#finish()
    return this.#finished
  }

  // ── prepare ──────────────────────────────────────────────────────────────

  async #prepare(): Promise<void> {
    if (this.#outcome !== undefined) return
    if (this.#signal.aborted) {
      this.#settle(abortFailure({ started: false }), { isFinal: true })
      return
    }
    if (this.#registry.isProgramOnly(this.#address)) {
      this.#settle(failureOf(this.#registry.notFound(this.#address)), { isFinal: true })
      return
    }
    try {
      await this.#authorise()
    } catch (error) {
      // Whatever a policy breaks on, the body does not run.
      const result = this.#signal.aborted ? abortFailure({ started: false }) : failureOf(error)
      this.#settle(result, { isFinal: true })
    }
  }

  async #authorise(): Promise<void> {
    const { exec } = this
    const decision = await this.#ctx.waterfall(this.#carrier, 'tools/pre-execute', exec, async () => allow)
    const verdict = await settleDecision(this.#ctx, exec, decision)
    if (verdict.kind === 'deny') {
      this.#settle(failure(verdict.reason))
      return
    }
    if (verdict.kind === 'aborted' || this.#signal.aborted) {
      this.#settle(abortFailure({ started: false }))
      return
    }
    const denial = this.#registry.denial(exec, this.#address.scope)
    if (denial !== undefined) this.#settle(failure(denial))
  }

  // ── dispatch ─────────────────────────────────────────────────────────────

  async #dispatch(): Promise<void> {
    await this.prepare()
    if (this.#outcome !== undefined) return
    const { exec } = this
    try {
      const result = await this.#ctx.waterfall(this.#carrier, 'tools/execute', exec, () => this.#runBody())
      const admitted = await this.#admit(result)
      const contexts = [...(this.#run?.contexts ?? []), ...(admitted.additionalContexts ?? [])]
      this.#settle(contexts.length === 0 ? admitted : withContexts(admitted, contexts))
    } catch (error) {
      this.#settle(this.#failureOf(error, this.#signal), { isFinal: true })
    } finally {
      exec.signal = this.#signal
    }
  }

  async #runBody(): Promise<ToolExecutionResult> {
    const fused = fuseSignals(this.#signal, this.exec.signal)
    try {
      const result = await this.#runTool(fused.signal)
      this.#canonical.add(result)
      return result
    } finally {
      fused.release()
    }
  }

  async #runTool(signal: AbortSignal): Promise<ToolExecutionResult> {
    if (signal.aborted) return abortFailure({ started: this.#bodyInvoked })
    const tool = this.#registry.find(this.#address)
    if (tool === undefined) return failureOf(this.#registry.notFound(this.#address))
    const run: Run = { contexts: [], concludes: false, isOver: false }
    const args = this.exec.arguments
    this.#run = run
    this.#bodyInvoked = true
    try {
      const value = await tool.execute(args, this.#runContext(run, signal))
      run.isOver = true
      const { isNested } = this.#address
      return await tool.toSuccess(value, { args, isNested, concludes: run.concludes })
    } catch (error) {
      return this.#failureOf(error, signal)
    } finally {
      run.isOver = true
    }
  }

  #runContext(run: Run, signal: AbortSignal): ToolRunContext {
    const late = (what: string): boolean => {
      if (run.isOver) this.#report(new TypeError(`tool "${this.exec.name}" called ${what} after its end`))
      return run.isOver
    }
    return Object.freeze({
      ...this.exec,
      signal,
      deferContext: (message: UserMessage) => {
        if (!late('deferContext')) run.contexts.push(toContext(message, 'the context'))
      },
      concludeTurn: () => {
        if (!late('concludeTurn')) run.concludes = true
      },
    })
  }

  /** What a wrapper gave in place of the body's own result has to fit the tool's declaration too. */
  async #admit(result: ToolExecutionResult | undefined): Promise<ToolExecutionResult> {
    if (result !== undefined && this.#canonical.has(result)) return result
    const contexts = toContexts(result?.additionalContexts, 'additionalContexts')
    if (result?.isError === true) return readFailure(result, contexts)
    if (result?.isError !== false) throw new TypeError('a tools/execute listener gave no result')
    const tool = this.#registry.find(this.#address)
    if (tool === undefined) return withContexts(failureOf(this.#registry.notFound(this.#address)), contexts)
    try {
      const { isNested } = this.#address
      const concludes = result.concludesTurn === true
      const args = this.exec.arguments
      return withContexts(await tool.toSuccess(result.value, { args, isNested, concludes }), contexts)
    } catch (error) {
      return withContexts(failureOf(error), contexts)
    }
  }

  // ── finish ───────────────────────────────────────────────────────────────

  async #finish(): Promise<ToolExecutionResult> {
    await this.#prepared
    await this.#dispatched
    const { result, isFinal } = this.#outcome ?? { result: notStarted(this.#signal), isFinal: true }
    const judged = isFinal ? result : await this.#judge(result)
    const final = this.#bound(this.#afterAbort(judged))
    Object.freeze(this.exec)
    try {
      this.#ctx.emit(this.#carrier, 'tools/result', this.exec, final)
    } catch (error) {
      this.#report(error)
    }
    return final
  }

  async #judge(result: ToolExecutionResult): Promise<ToolExecutionResult> {
    try {
      const decision = await this.#ctx.waterfall(
        this.#carrier,
        'tools/post-execute',
        this.exec,
        result,
        async () => accept,
      )
      return await settlePost(decision, result, {
        args: this.exec.arguments,
        isNested: this.#address.isNested,
        tool: () => this.#registry.find(this.#address),
      })
    } catch (error) {
      return failureOf(error)
    }
  }

  /** A success that nobody waits for any more is an abort; a failure stays what it is. */
  #afterAbort(result: ToolExecutionResult): ToolExecutionResult {
    if (result.isError || !this.#signal.aborted) return result
    return abortFailure({ started: this.#bodyInvoked, contexts: result.additionalContexts })
  }

  #bound(result: ToolExecutionResult): ToolExecutionResult {
    try {
      const content = this.#finalizeContent?.(this.exec, result)
      return content === undefined ? result : withContent(result, toContent(content, 'content'))
    } catch (error) {
      return withContexts(failureOf(error), result.additionalContexts ?? [])
    }
  }

  // ── small things ─────────────────────────────────────────────────────────

  #settle(result: ToolExecutionResult, options: { readonly isFinal?: boolean } = {}): void {
    this.#outcome = { result, isFinal: options.isFinal === true }
  }

  #failureOf(error: unknown, signal: AbortSignal): ToolExecutionResult {
    return isAbortOf(error, signal) ? abortFailure({ started: this.#bodyInvoked }) : failureOf(error)
  }

  #report(error: unknown): void {
    this.#ctx.fiber.report(error, `call of tool ${this.exec.name}`)
  }
}

/** A copy of a failure that a wrapper made. */
function readFailure(given: ToolExecutionFailure, contexts: readonly UserMessage[]): ToolExecutionFailure {
  const { error, content, meta } = given
  const { message, info } = error
  return failure(wellFormed(String(message)), {
    info: info === undefined ? undefined : adopt(info),
    content: (content as unknown) === undefined ? undefined : toContent(content, 'content'),
    meta: meta === undefined ? undefined : adopt(meta),
    contexts,
  })
}

function notStarted(signal: AbortSignal): ToolExecutionResult {
  if (signal.aborted) return abortFailure({ started: false })
  return failure('tool call not started', {
    info: Object.freeze({ name: 'ToolNotStartedError', code: 'TOOL_NOT_STARTED' }),
  })
}

/** Reads each property of `input` once. What cannot be read is the problem of the call, not of its caller. */
function readInput(input: ToolExecutionInput): { exec: ToolDispatchExecution; problem?: unknown } {
  const token = Symbol('tool call')
  try {
    const { callId, rootCallId = callId, name, arguments: given, signal, ...others } = input
    const exec = { ...others, callId, rootCallId, name: String(name), arguments: null, signal, token }
    if (!(signal instanceof AbortSignal)) throw new TypeError('a tool call needs a signal')
    const { args, problem } = snapshot(given)
    return { exec: { ...exec, arguments: args }, problem }
  } catch (problem) {
    const none = CallId('')
    const { signal } = new AbortController()
    return { exec: { callId: none, rootCallId: none, name: '', arguments: null, signal, token }, problem }
  }
}

/** No arguments at all are an empty object. */
function snapshot(given: unknown): { args: JsonValue; problem?: unknown } {
  if (given === undefined) return { args: Object.freeze({}) }
  try {
    return { args: adopt(given, 'arguments') as JsonValue }
  } catch (error) {
    return { args: null, problem: new ToolError('INVALID_ARGS', (error as Error).message) }
  }
}
