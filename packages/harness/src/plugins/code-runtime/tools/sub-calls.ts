import { CallId } from '@dsh/protocol'
import type { ContentBlock, JsonValue } from '@dsh/protocol'
import { HarnessError } from '../../../kernel/index.ts'
import type { Context } from '../../../kernel/index.ts'
import type {
  ToolCall,
  ToolExecutionInput,
  ToolExecutionResult,
  ToolRunContext,
} from '../../../core/tools/index.ts'
import { DispatchLog } from './dispatch-log.ts'

/** One call of a program, from its asking to its answer. */
interface Slot {
  readonly input: ToolExecutionInput
  readonly answer: PromiseWithResolvers<JsonValue>
  state: 'waiting' | 'started' | 'settled'
  call: ToolCall | undefined
  result: ToolExecutionResult | undefined
  isLate: boolean
}

export interface SubCall {
  readonly name: string
  /** Absent where the call never began. */
  readonly result?: ToolExecutionResult
  /** The program had ended when the result came. */
  readonly isLate: boolean
}

/**
 * The calls that one program makes, each through the whole pipeline of `ctx.tools`.
 *
 * They start in the order in which they were asked for: safe ones overlap, each other one waits for all before it and
 * holds up all behind it. Their results count in that order too.
 */
export class SubCalls {
  readonly #ctx: Context
  readonly #exec: ToolRunContext
  readonly #limit: number
  readonly #log: DispatchLog
  readonly #slots: Slot[] = []
  readonly #end = new AbortController()
  readonly #lanes: Promise<unknown>
  #change = Promise.withResolvers<void>()
  #running = 0
  #committed = 0
  /** Nothing starts before this many calls are committed. */
  #barrier = 0
  #allStarted = false

  constructor(ctx: Context, exec: ToolRunContext, options: { readonly maxParallel: number }) {
    this.#ctx = ctx
    this.#exec = exec
    this.#limit = options.maxParallel
    this.#log = new DispatchLog(ctx, exec)
    this.#lanes = Promise.all([this.#startAll(), this.#commitAll()])
  }

  /** In the order of asking: the first call is number 1 of the program. */
  get calls(): readonly SubCall[] {
    return this.#slots.map(({ input: { name }, result, isLate }) => ({
      name,
      isLate,
      ...(result && { result }),
    }))
  }

  /** The value that a tool gave. Rejects where it failed, and where the program ends first. */
  call(name: string, args: JsonValue): Promise<JsonValue> {
    const answer = Promise.withResolvers<JsonValue>()
    answer.promise.catch(() => {})
    if (this.#end.signal.aborted) answer.reject(ended())
    else this.#slots.push({ ...fresh, input: this.#input(name, args), answer })
    this.#changed()
    return answer.promise
  }

  /** Cancels what runs, drops what has not begun, and waits until nothing of it goes on. */
  async settle(): Promise<void> {
    this.#end.abort(ended())
    this.#changed()
    await this.#lanes
    for (const { answer } of this.#slots) answer.reject(ended())
  }

  /** What is not text in the results, such as pictures. */
  attachments(): ContentBlock[] {
    return this.#slots.flatMap(({ result }) => result?.content.filter(({ type }) => type !== 'text') ?? [])
  }

  #input(name: string, args: JsonValue): ToolExecutionInput {
    const { callId, rootCallId, token, agent, signal } = this.#exec
    return {
      callId: CallId(`${callId}:code:${this.#slots.length + 1}`),
      rootCallId,
      name,
      arguments: args,
      parent: token,
      signal: AbortSignal.any([signal, this.#end.signal]),
      ...(agent && { agent }),
    }
  }

  async #startAll(): Promise<void> {
    for (let index = 0; !this.#end.signal.aborted;) {
      const slot = this.#slots[index]
      if (slot === undefined || !this.#fits(index, slot)) {
        await this.#change.promise
        continue
      }
      await this.#start(slot)
      index++
    }
    this.#allStarted = true
    this.#changed()
  }

  /** Asks for the mode anew each time: the set of tools may have changed since. */
  #fits(index: number, slot: Slot): boolean {
    if (this.#committed < this.#barrier) return false
    const isParallel = this.#limit > 1 && this.#ctx.tools.executionMode(slot.input) === 'parallel'
    if (isParallel) return this.#running < this.#limit
    if (this.#committed < index) return false
    this.#barrier = index + 1
    return true
  }

  /** Resolves when the body runs, or will not. */
  async #start(slot: Slot): Promise<void> {
    slot.state = 'started'
    try {
      this.#log.started(slot.input)
      slot.call = this.#ctx.tools.open(slot.input)
      await slot.call.prepare()
      void this.#dispatch(slot, slot.call)
    } catch (error) {
      this.#lose(slot, error)
    }
  }

  async #dispatch(slot: Slot, call: ToolCall): Promise<void> {
    this.#running++
    try {
      await call.dispatch()
      slot.state = 'settled'
    } catch (error) {
      this.#lose(slot, error)
    }
    this.#running--
    this.#changed()
  }

  /** A log that takes no event, for one: the call has no result then. */
  #lose(slot: Slot, error: unknown): void {
    slot.call = undefined
    slot.state = 'settled'
    slot.answer.reject(error)
    this.#changed()
  }

  async #commitAll(): Promise<void> {
    for (let index = 0; ; index++) {
      while (this.#isOpen(this.#slots[index])) await this.#change.promise
      const slot = this.#slots[index]
      if (slot === undefined || slot.state === 'waiting') return
      await this.#commit(slot)
      this.#committed++
      this.#changed()
    }
  }

  #isOpen(slot: Slot | undefined): boolean {
    if (slot === undefined || slot.state === 'waiting') return !this.#allStarted
    return slot.state === 'started'
  }

  async #commit(slot: Slot): Promise<void> {
    const { input, answer, call } = slot
    if (call === undefined) return
    try {
      const result = await call.finish()
      slot.result = result
      slot.isLate = this.#end.signal.aborted
      for (const context of result.additionalContexts ?? []) this.#exec.deferContext(context)
      if (!result.isError && result.concludesTurn === true) this.#exec.concludeTurn()
      await this.#log.done(input, call, result)
      if (result.isError) answer.reject(new Error(result.error.message))
      else answer.resolve(result.value)
    } catch (error) {
      answer.reject(error)
    }
  }

  #changed(): void {
    const { resolve } = this.#change
    this.#change = Promise.withResolvers()
    resolve()
  }
}

const fresh = { state: 'waiting', call: undefined, result: undefined, isLate: false } as const

function ended(): Error {
  return new HarnessError('CODE_RUN_ENDED', 'the program has ended')
}
