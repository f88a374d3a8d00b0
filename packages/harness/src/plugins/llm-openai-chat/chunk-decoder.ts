import type { JsonValue, StreamChunk, TokenUsage } from '@dsh/protocol'
import { isFields } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import { BlockWriter } from './block-writer.ts'
import { CallCollector } from './call-collector.ts'
import type { CallCollectorOptions, CallFragment } from './call-collector.ts'
import { failureText } from './failure.ts'
import { toTokenUsage } from './usage.ts'

/** An error the host put into an answer whose status was 200. */
export interface ReportedError {
  readonly message: string
  readonly code: string | undefined
  readonly status: number | undefined
}

/**
 * Turns the objects of an answer into stream chunks. Takes deltas and whole messages alike, and anything else without
 * harm: what it does not know it passes over.
 */
export class ChunkDecoder {
  readonly #writer = new BlockWriter()
  readonly #calls: CallCollector
  readonly #reasoningFields: readonly string[]
  readonly #details = new Map<number, Record<string, JsonValue>>()
  #usage: TokenUsage | undefined
  #finish: string | undefined
  #error: ReportedError | undefined

  constructor(reasoningFields: readonly string[], calls: CallCollectorOptions) {
    this.#reasoningFields = reasoningFields
    this.#calls = new CallCollector(this.#writer, calls)
  }

  /** The host's own word for the end; undefined until there is one. */
  get finish(): string | undefined {
    return this.#finish
  }

  get error(): ReportedError | undefined {
    return this.#error
  }

  get usage(): TokenUsage | undefined {
    return this.#usage
  }

  get hasCalls(): boolean {
    return !this.#calls.isEmpty
  }

  get isEmpty(): boolean {
    return this.#writer.blockCount === 0
  }

  /** Thinking that must go back to this host as it came, since it is signed or hidden. */
  get reasoningDetails(): readonly JsonValue[] | undefined {
    const details = [...this.#details.values()]
    const isOpaque = details.some(({ type, signature, data }) => {
      return signature !== undefined || data !== undefined || type === 'reasoning.encrypted'
    })
    return isOpaque ? details : undefined
  }

  take(): StreamChunk[] {
    return this.#writer.take()
  }

  /** Ends all blocks. */
  end(): void {
    this.#writer.endSaid()
    this.#calls.finish()
  }

  /** One parsed event, or a whole body; nothing counts after an error. `event` is its name, where it has one. */
  add(value: unknown, event?: string): void {
    const given: unknown = Array.isArray(value) ? value[0] : value
    if (!isFields(given) || this.#error) return
    const choice = firstChoice(given)
    if (choice === undefined) this.#error ??= reportedError(given, event)
    this.#addUsage(given, choice)
    if (choice === undefined) return
    const part = choice['delta'] ?? choice['message']
    if (isFields(part)) this.#addPart(part)
    else if (typeof choice['text'] === 'string') this.#writer.say('text', choice['text'])
    const reason = choice['finish_reason']
    if (typeof reason === 'string' && reason !== '') this.#finish = reason
    if (isFields(choice['error'])) this.#error ??= reportedError(choice, event)
  }

  #addUsage(given: Fields, choice: Fields | undefined): void {
    const groq = isFields(given['x_groq']) ? given['x_groq']['usage'] : undefined
    this.#usage = toTokenUsage(given['usage'] ?? choice?.['usage'] ?? groq) ?? this.#usage
  }

  #addPart(part: Fields): void {
    this.#addReasoning(part)
    const { content, refusal } = part
    if (typeof content === 'string') this.#writer.say('text', content)
    else if (Array.isArray(content)) for (const piece of content) this.#addPiece(piece)
    if (typeof refusal === 'string') this.#writer.say('text', refusal)
    const { tool_calls: calls, function_call: call } = part
    if (Array.isArray(calls)) this.#calls.add(calls.filter(isFields).map(entry => toFragment(entry)))
    else if (isFields(call)) this.#calls.add([toFragment({ index: 0, function: call })])
  }

  #addReasoning(part: Fields): void {
    const details = part['reasoning_details']
    const field = this.#reasoningFields.find(name => typeof part[name] === 'string' && part[name] !== '')
    if (field !== undefined) this.#writer.say('reasoning', part[field] as string)
    if (!Array.isArray(details)) return
    for (const detail of details.filter(isFields)) {
      this.#keepDetail(detail)
      const text = detail['text'] ?? detail['summary']
      if (field === undefined && typeof text === 'string') this.#writer.say('reasoning', text)
    }
  }

  #keepDetail(detail: Fields): void {
    const index = typeof detail['index'] === 'number' ? detail['index'] : this.#details.size
    const known = this.#details.get(index) ?? {}
    for (const [key, value] of Object.entries(detail)) {
      if (value === undefined || value === null) continue
      const before = known[key]
      const grows = ['text', 'summary', 'data'].includes(key) && typeof before === 'string'
      known[key] = grows && typeof value === 'string' ? before + value : (value as JsonValue)
    }
    this.#details.set(index, known)
  }

  /** Content as a list of parts, thinking among them. */
  #addPiece(piece: unknown): void {
    if (!isFields(piece)) return
    const { text, thinking } = piece
    if (typeof thinking === 'string') this.#writer.say('reasoning', thinking)
    else if (Array.isArray(thinking)) {
      for (const part of thinking.filter(isFields)) this.#writer.say('reasoning', textOf(part['text']))
    } else this.#writer.say('text', textOf(text))
  }
}

function firstChoice(given: Fields): Fields | undefined {
  const { choices } = given
  if (!Array.isArray(choices)) return undefined
  return choices.find((choice): choice is Fields => isFields(choice) && (choice['index'] ?? 0) === 0)
}

function toFragment(entry: Fields): CallFragment {
  const made = isFields(entry['function']) ? entry['function'] : entry
  const args = made['arguments']
  const { index } = entry
  return {
    index: typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : undefined,
    id: textOf(entry['id']),
    name: textOf(made['name']),
    args: isFields(args) ? JSON.stringify(args) : textOf(args),
  }
}

/** Undefined where the object reports none; a keep-alive, an empty usage chunk and a first chunk do not. */
function reportedError(given: Fields, event: string | undefined): ReportedError | undefined {
  const { error } = given
  const isError =
    (error !== undefined && error !== null) ||
    given['object'] === 'error' ||
    event === 'error' ||
    (given['choices'] === undefined && hasErrorShape(given))
  if (!isError) return undefined
  const facts = isFields(error) ? error : given
  const code = facts['code'] ?? facts['status_code'] ?? facts['type']
  const status = [facts['status'], facts['code'], given['status'], given['status_code']]
    .map(Number)
    .find(isStatus)
  return {
    message: failureText(given),
    code: typeof code === 'string' ? code : undefined,
    status,
  }
}

function hasErrorShape(given: Fields): boolean {
  const base = given['base_resp']
  if (isFields(base) && base['status_code'] !== 0 && base['status_code'] !== undefined) return true
  const hasText = [given['message'], given['msg'], given['detail']].some(text => typeof text === 'string')
  return (
    hasText && (given['code'] !== undefined || given['detail'] !== undefined || given['status'] !== undefined)
  )
}

function isStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value <= 599
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
