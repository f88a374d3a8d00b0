import { SessionId } from '@dsh/protocol'
import type { EpochHeader, StreamChunk } from '@dsh/protocol'
import type { Agent, RequestErrorAction } from '../../core/agent/index.ts'
import { createUserMessage, isLoopRequest } from '../../core/llm/index.ts'
import type { GenerateOptions } from '../../core/llm/index.ts'
import type { Session } from '../../core/session/index.ts'
import { HarnessError } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import { placeOf } from '../time-travel/index.ts'
import { fillEntered } from './entered.ts'
import { headerOf, Portable } from './portable.ts'
import type { CanonicalRequest } from './portable.ts'
import type { RecordedMessage, RecordedRequest, Recording } from './recording.ts'
import { replaceAgain } from './replaced.ts'
import { isSameRequest } from './same-request.ts'
import { ServedTools } from './served-tools.ts'
import type { ServedResult } from './served-tools.ts'
import { StandIns } from './stand-ins.ts'

export interface RunRecordingOptions {
  /** What is tested: a composition with the core's plugins. Nothing of it is undone but the agent. */
  readonly ctx: Context
  /** Stands for the folder of the recorded session; absolute. */
  readonly workspace: string
  readonly home?: string | undefined
  /** The system text is the recorded one, and tools that nobody here provides are as a model was told of them. */
  readonly standIns?: boolean
  /** Goes on where a request differs, so that all of them are seen. */
  readonly goOn?: boolean
  readonly signal?: AbortSignal
}

export interface RecordingReport {
  /** The requests that were made, in order. */
  readonly made: readonly CanonicalRequest[]
  /** The first request that is not as it was recorded. */
  readonly difference?: RecordingDifference
}

export interface RecordingDifference {
  /** `2.1`; of a request that was not recorded its number. */
  readonly place: string
  /** Undefined where nothing was asked any more. */
  readonly expected: CanonicalRequest | undefined
  /** Undefined where nothing was asked. */
  readonly actual: CanonicalRequest | undefined
  /** What failed, where something did. */
  readonly failure?: unknown
}

/**
 * Runs a recorded session again: the same inputs, the recorded answers and results, and every request compared with the
 * recorded one. No model, no tool and no clock is asked. Resolves at the first difference, or at the end.
 */
export async function runRecording(
  recording: Recording,
  options: RunRecordingOptions,
): Promise<RecordingReport> {
  const run = new Run(recording, options)
  return await run.toEnd()
}

class Run {
  readonly #requests: readonly RecordedRequest[]
  readonly #options: RunRecordingOptions
  readonly #portable: Portable
  readonly #made: CanonicalRequest[] = []
  #difference: RecordingDifference | undefined
  #failure: unknown
  /** The request whose answer is served, or whose calls are. */
  #current: RecordedRequest | undefined
  #answered = 0
  #served = new Set<number>()

  constructor({ requests }: Recording, options: RunRecordingOptions) {
    const { workspace, home } = options
    this.#requests = requests
    this.#options = options
    this.#portable = new Portable({ workspace, home })
  }

  async toEnd(): Promise<RecordingReport> {
    const { ctx, workspace, signal } = this.#options
    const { provider = '', model = '' } = this.#requests[0]?.request.header.config ?? {}
    const handle = await ctx.agents.create({
      sessionId: SessionId(`recording-${crypto.randomUUID()}`),
      meta: { cwd: workspace },
      agentOptions: { provider, model },
      setup: agentCtx => this.#conduct(agentCtx),
      ...(signal === undefined ? {} : { signal }),
    })
    const open = this.#closeModels(handle.agent)
    const { agent } = handle
    const stop = (): void => agent.cancel({ kind: 'user' })
    signal?.addEventListener('abort', stop, { once: true })
    try {
      await this.#feedTurns(agent)
      signal?.throwIfAborted()
    } finally {
      signal?.removeEventListener('abort', stop)
      await handle.dispose()
      open()
    }
    return {
      made: this.#made,
      ...(this.#difference === undefined ? {} : { difference: this.#difference }),
    }
  }

  get #isOver(): boolean {
    return this.#difference !== undefined && this.#options.goOn !== true
  }

  get #next(): RecordedRequest | undefined {
    return this.#requests[this.#made.length]
  }

  /** Nothing but the recorded answers is heard; titles and summaries by a model are no part of a recording. */
  #closeModels(agent: Agent): Disposer {
    return this.#options.ctx.on(
      'llm/stream',
      (options, next) => {
        if (options.sessionId === agent.id && isLoopRequest(options)) return next()
        throw new HarnessError('NO_MODEL', 'no model is asked while a recording runs')
      },
      { prepend: true },
    )
  }

  #conduct(ctx: Context): void {
    const { standIns = false } = this.#options
    ctx.systemPrompt.suppressRuntimeContext()
    const tools = new ServedTools(ctx, ({ callId }) => this.#resultOf(callId, agentOf(ctx)))
    const header = (): EpochHeader | undefined => this.#here(this.#next?.request.header)
    const others = standIns ? new StandIns(ctx, tools, header) : undefined
    const prepend = { prepend: true }
    ctx.on(
      'agent/pre-step',
      async (_step, next) => {
        others?.update()
        tools.hide()
        const decision = await next()
        if (decision.kind === 'reject') return decision
        const entered = this.#next?.entered.map(message => this.#here(message)) ?? []
        return { kind: 'enter', messages: fillEntered(decision.messages, entered) }
      },
      prepend,
    )
    ctx.on('agent/request', async ({ agent }, next) => {
      this.#replace(agent.session)
      return this.#next?.request.header.config ?? (await next())
    })
    ctx.on(
      'llm/stream',
      (options, next) => (isLoopRequest(options) ? this.#answer(options, agentOf(ctx)) : next()),
      prepend,
    )
    ctx.on('approval/request', async () => ({ outcome: 'allowed-once' }), prepend)
    ctx.on('agent/request-error', (_error, next) => this.#afterFailure(next), prepend)
    ctx.on('agent/turn-stopping', ({ agent }) => this.#keepGoing(agent))
    ctx.on('agent/error', ({ error }) => void (this.#failure ??= error))
    ctx.on('session/event', ({ id }, event) => {
      if (id === agentOf(ctx).id && event.type === 'tool/result') this.#afterResult(agentOf(ctx))
    })
  }

  async #feedTurns(agent: Agent): Promise<void> {
    for (const [index, { turn, entered }] of this.#requests.entries()) {
      if (this.#requests[index - 1]?.turn === turn) continue
      if (this.#isOver) break
      // What a plugin begins by itself, it has begun by now.
      if (this.#made.length > index) continue
      this.#permit(agent)
      const own = entered.filter(({ source }) => source.kind === 'user')
      this.#feed(agent, own.length > 0 ? own : entered.slice(0, 1), 'idle')
      await agent.whenIdle()
    }
    const missing = this.#next
    if (this.#difference !== undefined || missing === undefined) return
    this.#difference = {
      place: placeOf(missing),
      expected: missing.request,
      actual: undefined,
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
    }
  }

  /** What tools may do is a person's word, like the prompts. */
  #permit({ session }: Agent): void {
    const { mode, policy } = this.#next?.permission ?? {}
    const { ctx } = this.#options
    if (mode !== undefined) ctx.get('sandboxPolicy')?.setMode(session, mode)
    if (policy !== undefined) ctx.get('approval')?.setPolicy(session, policy)
  }

  /** A plugin that is not here may have kept the turn going by what it said. */
  #keepGoing(agent: Agent): void {
    const next = this.#next
    if (next === undefined || next.turn !== this.#current?.turn || agent.inbox.nextStep.length > 0) return
    this.#feed(agent, next.entered.slice(0, 1), 'running')
  }

  /** Only the last one wakes, so that all of them enter together. */
  #feed(agent: Agent, messages: readonly RecordedMessage[], when: 'idle' | 'running'): void {
    for (const [index, message] of messages.entries()) {
      const { content, source } = this.#here(message)
      const wakes = when === 'running' || index === messages.length - 1
      agent.send(createUserMessage({ content, source }), 'next-step', wakes)
    }
  }

  async *#answer(options: GenerateOptions, agent: Agent): AsyncGenerator<StreamChunk, void> {
    const recorded = this.#next
    const actual = this.#canonical(options)
    this.#made.push(actual)
    this.#current = recorded
    this.#answered = 0
    this.#served = new Set()
    if (recorded === undefined || !this.#isRight(recorded, actual)) {
      const place = recorded === undefined ? `${this.#made.length}` : placeOf(recorded)
      this.#difference ??= { place, expected: recorded?.request, actual }
      if (recorded === undefined || this.#options.goOn !== true) throw this.#stop(agent)
    }
    const next = this.#next
    if (next?.turn === recorded.turn && next.attempt === 1) {
      const steered = next.entered.filter(({ source }) => source.kind === 'user')
      this.#feed(agent, steered, 'running')
    }
    for (const chunk of recorded.answer) yield this.#here(withoutWait(chunk))
    if (recorded.outcome === 'cut' || recorded.outcome === 'silent') throw this.#stop(agent)
  }

  /** Ends the turn as somebody did when it was recorded. */
  #stop(agent: Agent): Error {
    agent.cancel({ kind: 'user' }, { keepInbox: true })
    return new HarnessError('STOPPED', 'the recorded turn was stopped here')
  }

  /** What is not sure to have been sent is not compared. */
  #isRight({ outcome, request }: RecordedRequest, actual: CanonicalRequest): boolean {
    return outcome === 'silent' || isSameRequest(request, actual)
  }

  /** Unless somebody here did. */
  #replace(session: Session): void {
    const { replaced = [], request } = this.#next ?? {}
    if (replaced.length === 0 || request?.messages.length === session.messages.length) return
    for (const each of replaced) replaceAgain(session, this.#here(each))
  }

  async #afterFailure(next: () => Promise<RequestErrorAction>): Promise<RequestErrorAction> {
    const upcoming = this.#next
    if (upcoming === undefined || upcoming.attempt === 1 || this.#isOver) return undefined
    // Whoever shortens the history before the next attempt does so first.
    return (upcoming.replaced === undefined ? undefined : await next()) ?? { kind: 'retry' }
  }

  #resultOf(callId: string, agent: Agent): ServedResult {
    const { results = [], end } = this.#current ?? {}
    const index = results.findIndex((result, at) => result.callId === callId && !this.#served.has(at))
    const result = results[index]
    if (result === undefined) throw this.#stop(agent)
    this.#served.add(index)
    // Which of them it was is not in the log; a failure ends no turn.
    return { ...this.#here(result), concludes: end === 'concluded' }
  }

  #afterResult(agent: Agent): void {
    this.#answered++
    const { results = [], end } = this.#current ?? {}
    if (this.#answered < results.length) return
    if (end === 'stopped') this.#stop(agent)
    else if (this.#next?.turn === this.#current?.turn) this.#permit(agent)
  }

  #canonical(options: GenerateOptions): CanonicalRequest {
    return this.#portable.canonical(headerOf(options), options.messages)
  }

  #here<T>(value: T): T {
    return this.#portable.here(value)
  }
}

function agentOf(ctx: Context): Agent {
  const { agent } = ctx
  if (agent === undefined) throw new TypeError('the context belongs to no agent')
  return agent
}

/** A provider's wish to be left alone is not waited for again. */
function withoutWait(chunk: StreamChunk): StreamChunk {
  if (chunk.type !== 'finish' || chunk.reason.kind !== 'error') return chunk
  const { providerRetryAfterMs: _wait, ...failure } = chunk.reason.failure
  return { ...chunk, reason: { kind: 'error', failure } }
}
