import { randomUUID } from 'node:crypto'
import type { JsonValue, Message, StreamChunk } from '@dsh/protocol'
import { classifyFailure } from '../../core/llm/index.ts'
import type { IdleWatchdog } from '../../core/llm/index.ts'
import { endsWithin } from '../../kernel/index.ts'
import { errorCode } from '../http/index.ts'
import { BodyParser, isKeepAlive } from './body-parser.ts'
import { ChunkDecoder } from './chunk-decoder.ts'
import { reportedFailure, requestIdOf, wireFailure } from './failure.ts'
import type { FailureSubject } from './failure.ts'
import { toWireFinish } from './finish.ts'
import type { WireNoticeCode } from './notice.ts'
import type { Quirks } from './quirks.ts'
import type { WireResponse } from './transport.ts'
import { clipped } from './wire-text.ts'

export interface AnswerOptions {
  readonly response: WireResponse
  readonly watchdog: IdleWatchdog
  readonly quirks: Quirks
  readonly subject: FailureSubject
  /** The history, for the ids of its calls. */
  readonly messages: readonly Message[]
  /** How long the host may take for its last words once it has named a reason for the end. */
  readonly lingerMs: number
  report(code: WireNoticeCode, text: string): void
}

/** The chunks of one answer. Throws an `LlmError` for everything that is not a whole and good one. */
export async function* readAnswer(options: AnswerOptions): AsyncGenerator<StreamChunk, void> {
  const answer = new Answer(options)
  let isOver = false
  try {
    while (await answer.more()) yield* answer.take()
    isOver = true
    yield* answer.last()
  } finally {
    if (isOver) options.response.release()
    else options.response.discard()
  }
}

class Answer {
  readonly #options: AnswerOptions
  readonly #body: BodyParser
  readonly #decoder: ChunkDecoder
  #skipped: string | undefined

  constructor(options: AnswerOptions) {
    const { response, quirks, report } = options
    this.#options = options
    this.#decoder = new ChunkDecoder(quirks.reasoningFields, {
      isTaken: id => this.#options.messages.some(message => holdsCall(message, id)),
      newId: () => `call_${randomUUID()}`,
      report: text => report('MENDED_CALL', text),
    })
    this.#body = new BodyParser(
      {
        onValue: (value, event) => this.#decoder.add(value, event),
        onSkipped: line => {
          this.#skipped = clipped(line, 200)
          report('SKIPPED_LINE', `a line of the stream is no JSON: ${this.#skipped}`)
        },
      },
      { isDeclared: response.header('content-type')?.includes('event-stream') ?? false },
    )
  }

  take(): StreamChunk[] {
    return this.#decoder.take()
  }

  /** Reads on; false when there is nothing more to come, for whatever reason. */
  async more(): Promise<boolean> {
    if (this.#body.isDone || this.#decoder.error || this.#body.other !== undefined) return false
    const bytes = await this.#read()
    if (bytes !== undefined) return true
    this.#body.end()
    return false
  }

  /** One read, and where the host's comments do not count as life, as many as it takes. */
  #read(): Promise<Uint8Array | undefined> {
    const { watchdog, quirks } = this.#options
    return watchdog.guard(quirks.commentsResetIdle ? this.#readOnce() : this.#readData())
  }

  async #readData(): Promise<Uint8Array | undefined> {
    for (;;) {
      const bytes = await this.#readOnce()
      if (bytes === undefined || !isKeepAlive(Buffer.from(bytes).toString('latin1'))) return bytes
    }
  }

  async #readOnce(): Promise<Uint8Array | undefined> {
    const { response, lingerMs } = this.#options
    const isEnding = this.#decoder.finish !== undefined
    try {
      const reading = response.read()
      if (isEnding && !(await endsWithin(reading, lingerMs))) return undefined
      const bytes = await reading
      if (bytes !== undefined) this.#body.feed(bytes)
      return bytes
    } catch (error) {
      if (isEnding) return undefined
      throw this.#brokenOff(error)
    }
  }

  #brokenOff(error: unknown): Error {
    const { subject, response } = this.#options
    const code = errorCode(error)
    const isCut = error instanceof Error && (error.message === 'aborted' || cutCodes.has(code))
    return wireFailure(
      isCut ? 'STREAM_CLOSED' : 'TRANSPORT',
      `the connection to ${subject.host} broke in the middle of an answer (${code})`,
      { cause: error, ...requestFacts(response) },
    )
  }

  /** The end: open blocks closed, usage, and the reason, or the failure that the answer turned out to be. */
  *last(): Generator<StreamChunk, void> {
    const decoder = this.#decoder
    const finish = decoder.finish ?? (this.#body.isDone || this.#body.isJson ? 'stop' : undefined)
    const kind = finish === undefined ? undefined : toWireFinish(finish)
    const failure = this.#failure(finish)
    if (failure === undefined) decoder.end()
    yield* decoder.take()
    if (decoder.usage) yield { type: 'usage', usage: decoder.usage }
    if (failure) throw failure
    if (kind === undefined)
      this.#options.report('UNKNOWN_FINISH', `finish reason "${finish}" counts as a normal end`)
    if (kind === 'max-tokens') return void (yield this.#finish('max-tokens'))
    if (decoder.hasCalls) return void (yield this.#finish('tool-calls'))
    if (!decoder.isEmpty) return void (yield this.#finish('stop'))
    const { subject, response } = this.#options
    throw wireFailure('EMPTY_RESPONSE', `${subject.provider} gave an empty answer`, requestFacts(response))
  }

  #finish(kind: 'stop' | 'tool-calls' | 'max-tokens'): StreamChunk {
    const details = this.#decoder.reasoningDetails
    if (details === undefined) return { type: 'finish', reason: { kind } }
    const response: JsonValue = { reasoning_details: details }
    return { type: 'finish', reason: { kind }, replayState: { response } }
  }

  #failure(finish: string | undefined): Error | undefined {
    const { subject, response } = this.#options
    const facts = requestFacts(response)
    const { error } = this.#decoder
    if (error) return reportedFailure(error, subject, facts.requestId)
    const { other } = this.#body
    if (other !== undefined) {
      const text = `${subject.provider} answered with neither events nor JSON: ${clipped(other.trim(), 500)}`
      return wireFailure('INVALID_RESPONSE', text, facts)
    }
    if (finish === undefined) {
      const last = this.#skipped === undefined ? '' : `; its last line that was no JSON: ${this.#skipped}`
      return wireFailure(
        'STREAM_CLOSED',
        `${subject.provider} ended the stream without an end of the answer${last}`,
        facts,
      )
    }
    if (toWireFinish(finish) === 'filtered') {
      return wireFailure(
        'UNSUPPORTED_CONTENT',
        `the content filter of ${subject.provider} stopped the answer (${finish})`,
        facts,
      )
    }
    if (toWireFinish(finish) !== 'failure') return undefined
    const code = classifyFailure({ code: finish })
    const text = `${subject.provider} reported its own failure as the end of the answer: ${finish}`
    return wireFailure(code === 'UNKNOWN' ? 'SERVER' : code, text, facts)
  }
}

function holdsCall(message: Message, id: string): boolean {
  return (
    message.role === 'assistant' &&
    message.content.some(block => block.type === 'tool-call' && block.id === id)
  )
}

/** The host ended the body before its own end. */
const cutCodes = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'Z_BUF_ERROR', 'HPE_INVALID_EOF_STATE'])

function requestFacts(response: WireResponse): { readonly requestId?: string } {
  const requestId = requestIdOf(name => response.header(name))
  return requestId === undefined ? {} : { requestId }
}
