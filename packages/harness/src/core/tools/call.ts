import type { UserMessage } from '@dsh/protocol'
import type { Carrier, Context } from '../../kernel/index.ts'
import { scopeTarget } from '../scope/index.ts'
import { settleDecision } from './approval.ts'
import { settleGiven } from './given.ts'
import { readInput } from './input.ts'
import { settlePost } from './post.ts'
import { scopeOfCall } from './registry.ts'
import type { ToolAddress, ToolRegistry } from './registry.ts'
import {
  abortFailure,
  failure,
  failureOf,
  toContent,
  toContext,
  withContent,
  withContexts,
  withInertText,
} from './result.ts'
import { fuseSignals } from './signal.ts'
import { isAbortOf } from './thrown.ts'
import type {
  PostToolDecision,
  PreToolDecision,
  ToolDefinition,
  ToolDispatchExecution,
  ToolExecutionInput,
  ToolExecutionResult,
  ToolRunContext,
} from './tool.ts'

/** What came of a call so far. A final outcome is policy's last word too: post-execute is not asked. */
interface Outcome {
  readonly result: ToolExecutionResult
  readonly isFinal: boolean
}

/** One run of the body; a wrapper that retries makes several. What counts is the run whose result it gives. */
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
  /** What listeners are given. Nothing of it can change but the signal, until the result is there. */
  readonly exec: ToolDispatchExecution
  readonly #ctx: Context
  readonly #registry: ToolRegistry
  readonly #address: ToolAddress
  readonly #carrier: Carrier
  readonly #signal: AbortSignal
  readonly #finalizeContent: ToolDefinition['finalizeContent']
  /** Results that came from a run of the body as they are. */
  readonly #runs = new WeakMap<object, Run>()
  readonly #close: () => void
  #outcome: Outcome | undefined
  #lastRun: Run | undefined
  #bodyInvoked = false
  #prepared: Promise<void> | undefined
  #dispatched: Promise<void> | undefined
  #finished: Promise<ToolExecutionResult> | undefined

  /** Used by `ToolRuntime.open`; not for plugins. */
  constructor(ctx: Context, registry: ToolRegistry, input: ToolExecutionInput) {
    const { exec, close, problem } = readInput(input)
    this.exec = exec
    this.#close = close
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

  async #dispatch(): Promise<void> {
    await this.prepare()
    if (this.#outcome !== undefined) return
    if (this.#signal.aborted) {
      this.#settle(abortFailure({ started: false }))
      return
    }
    const { exec } = this
    try {
      const result = await this.#ctx.waterfall(this.#carrier, 'tools/execute', exec, () => this.#runBody())
      const admitted = await this.#admit(result)
      const run = this.#runs.get(result) ?? this.#lastRun
      const contexts = [...(run?.contexts ?? []), ...(admitted.additionalContexts ?? [])]
      this.#settle(contexts.length === 0 ? admitted : withContexts(admitted, contexts))
    } catch (error) {
      this.#settle(this.#failureOf(error, this.#signal), { isFinal: true })
    } finally {
      exec.signal = this.#signal
    }
  }

  async #runBody(): Promise<ToolExecutionResult> {
    const fused = fuseSignals(this.#signal, this.exec.signal)
    const run: Run = { contexts: [], concludes: false, isOver: false }
    try {
      const result = await this.#runTool(run, fused.signal)
      this.#runs.set(result, run)
      return result
    } finally {
      run.isOver = true
      fused.release()
    }
  }

  async #runTool(run: Run, signal: AbortSignal): Promise<ToolExecutionResult> {
    if (signal.aborted) return abortFailure({ started: this.#bodyInvoked })
    const args = this.exec.arguments
    try {
      const tool = this.#registry.require(this.#address)
      this.#lastRun = run
      this.#bodyInvoked = true
      const value = await tool.execute(args, this.#runContext(run, signal))
      run.isOver = true
      const { isNested } = this.#address
      return await tool.toSuccess(value, { args, isNested, concludes: run.concludes })
    } catch (error) {
      return this.#failureOf(error, signal)
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
  #admit(result: ToolExecutionResult): ToolExecutionResult | Promise<ToolExecutionResult> {
    if (this.#runs.has(result)) return result
    return settleGiven(result, {
      args: this.exec.arguments,
      isNested: this.#address.isNested,
      tool: () => this.#registry.require(this.#address),
    })
  }

  async #finish(): Promise<ToolExecutionResult> {
    await this.#prepared
    await this.#dispatched
    const { result, isFinal } = this.#outcome ?? { result: notStarted(this.#signal), isFinal: true }
    const judged = isFinal ? result : await this.#judge(result)
    const final = withInertText(this.#bound(this.#afterAbort(judged)))
    this.#close()
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

function notStarted(signal: AbortSignal): ToolExecutionResult {
  if (signal.aborted) return abortFailure({ started: false })
  return failure('tool call not started', {
    info: Object.freeze({ name: 'ToolNotStartedError', code: 'TOOL_NOT_STARTED' }),
  })
}
