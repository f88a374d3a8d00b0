import type { ToolCallBlock } from '@dsh/protocol'
import { abortFailure } from '../tools/index.ts'
import type { ToolCall, ToolExecutionInput, ToolExecutionResult } from '../tools/index.ts'
import type { LoopHost, StepPlace } from './host.ts'
import { logResult, notStarted, outcomeUnknown } from './tool-result.ts'

/** One call of the message, from its start to its result. */
interface Slot {
  readonly block: ToolCallBlock
  readonly input: ToolExecutionInput
  /** `settled`: the body is over, or was never to run. `lost`: started, and nobody knows what came of it. */
  state: 'waiting' | 'started' | 'settled' | 'lost'
  /** Seq of its 'tool/call'. */
  callSeq: number | undefined
  call: ToolCall | undefined
}

/**
 * Runs the tool calls of one message and logs one result for each, in the order of the message.
 *
 * Two lanes work over the same slots: one starts calls as the pool and the barriers let it, the other commits what has
 * settled, so that a call that waits for approval holds up nothing before it. Gives whether a result concludes the
 * turn. Rejects with the first failure of the scheduling itself, after every call has its result.
 */
export async function runToolCalls(
  host: LoopHost,
  blocks: readonly ToolCallBlock[],
  place: StepPlace,
): Promise<{ readonly concluded: boolean }> {
  const schedule = new Schedule(host, blocks, place)
  await schedule.run()
  return schedule
}

class Schedule {
  readonly #host: LoopHost
  readonly #place: StepPlace
  readonly #slots: readonly Slot[]
  concluded = false
  #failure: { readonly error: unknown } | undefined
  #change = Promise.withResolvers<void>()
  #running = 0
  #committed = 0
  /** Nothing starts before this many calls are committed. */
  #barrier = 0
  /** The size of the pool, fixed for one group. */
  #limit: number | undefined
  #allStarted = false

  constructor(host: LoopHost, blocks: readonly ToolCallBlock[], place: StepPlace) {
    this.#host = host
    this.#place = place
    this.#slots = blocks.map(block => {
      const { id: callId, name, arguments: text } = block
      const input = { callId, name, arguments: parseArguments(text), agent: host.agent, signal: place.signal }
      return { block, input, state: 'waiting', callSeq: undefined, call: undefined }
    })
  }

  async run(): Promise<void> {
    await Promise.all([this.#startAll(), this.#commitAll()])
    this.#answerUnstarted()
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async #startAll(): Promise<void> {
    for (const [index, slot] of this.#slots.entries()) {
      try {
        while (!this.#isStopped && !this.#fits(index, slot)) await this.#change.promise
        if (this.#isStopped) break
        await this.#start(slot)
      } catch (error) {
        if (slot.state === 'started') slot.state = 'lost'
        this.#fail(error)
      }
    }
    this.#allStarted = true
    this.#changed()
  }

  get #isStopped(): boolean {
    return this.#failure !== undefined || this.#place.signal.aborted
  }

  /** Asks for the mode anew each time: the set of tools may have changed since. */
  #fits(index: number, slot: Slot): boolean {
    if (this.#committed < this.#barrier) return false
    const limit = this.#limit ?? this.#host.limits.maxParallelToolCalls
    const isParallel = limit > 1 && this.#host.ctx.tools.executionMode(slot.input) === 'parallel'
    if (isParallel) {
      this.#limit = limit
      return this.#running < limit
    }
    if (this.#committed < index) return false
    this.#barrier = index + 1
    this.#limit = undefined
    return true
  }

  /** Resolves when the body runs; what it gives is for the other lane. */
  async #start(slot: Slot): Promise<void> {
    this.#logCall(slot)
    slot.state = 'started'
    const call = this.#host.ctx.tools.open(slot.input)
    slot.call = call
    await call.prepare()
    // A failure meanwhile forbids new bodies; an abort is the pipeline's to judge.
    if (this.#failure !== undefined) slot.state = 'lost'
    else void this.#dispatch(slot, call)
  }

  async #dispatch(slot: Slot, call: ToolCall): Promise<void> {
    this.#running++
    try {
      await call.dispatch()
      slot.state = 'settled'
    } catch (error) {
      slot.state = 'lost'
      this.#fail(error)
    }
    this.#running--
    this.#changed()
  }

  async #commitAll(): Promise<void> {
    for (const slot of this.#slots) {
      while (slot.state === 'started' || (slot.state === 'waiting' && !this.#allStarted))
        await this.#change.promise
      if (slot.state === 'waiting') return
      await this.#commit(slot)
      this.#committed++
      this.#changed()
    }
  }

  async #commit(slot: Slot): Promise<void> {
    const { call } = slot
    if (slot.state === 'settled' && call !== undefined) {
      try {
        this.#log(slot, await call.finish())
        return
      } catch (error) {
        this.#fail(error)
      }
    }
    this.#tryLog(slot, outcomeUnknown)
  }

  #log(slot: Slot, result: ToolExecutionResult): void {
    const { block, callSeq } = slot
    logResult(this.#host, this.#place, { callId: block.id, callSeq, result })
    if (!result.isError && result.concludesTurn === true) this.concluded = true
    for (const context of result.additionalContexts ?? []) {
      try {
        this.#host.inbox.append('next-step', context)
      } catch (error) {
        // One bad context is not worth the turn.
        const { turn, step } = this.#place
        this.#host.events.emit('agent/error', { turn, step, error })
      }
    }
  }

  /** Every call of a logged message is answered: no provider takes a history where one is not. */
  #answerUnstarted(): void {
    for (const slot of this.#slots) {
      if (slot.state !== 'waiting') continue
      if (this.#failure !== undefined) {
        this.#tryLog(slot, notStarted)
        continue
      }
      try {
        this.#logCall(slot)
        this.#log(slot, abortFailure({ started: false }))
      } catch (error) {
        this.#fail(error)
      }
    }
  }

  #logCall(slot: Slot): void {
    const { turn, step } = this.#place
    const { id: callId, name, arguments: text } = slot.block
    const data = { turn, step, callId, name, arguments: text }
    slot.callSeq = this.#host.session.append('tool/call', data).seq
  }

  #tryLog(slot: Slot, result: ToolExecutionResult): void {
    try {
      this.#log(slot, result)
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.#changed()
  }

  #changed(): void {
    const { resolve } = this.#change
    this.#change = Promise.withResolvers()
    resolve()
  }
}

/** The raw text stands for itself where it is no JSON; the tool's schema then says what is wrong. */
function parseArguments(text: string): unknown {
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
