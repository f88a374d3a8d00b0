import { createParser } from 'eventsource-parser'
import { parseJson } from '../../kernel/index.ts'

export interface BodyEvents {
  /** A parsed event, or the whole body where it is one JSON value. `event` is the event's name, where it has one. */
  onValue(value: unknown, event: string | undefined): void
  /** A data line that is no JSON. */
  onSkipped(line: string): void
}

/** Characters that one event, or a body that is no stream, may have. */
const maxLength = 64 * 1024 * 1024
const done = '[DONE]'

/**
 * Reads a body by what it is, whatever its content type says: a stream of events, one JSON value, or neither.
 *
 * Bytes may come in any pieces; characters are put together before anything looks at them.
 */
export class BodyParser {
  readonly #events: BodyEvents
  readonly #text = new TextDecoder()
  readonly #parser: ReturnType<typeof createParser>
  #kind: 'unknown' | 'events' | 'json' | 'other' = 'unknown'
  #whole = ''
  readonly #isDeclared: boolean
  #isDone = false

  /** `isDeclared`: the content type says that this is a stream of events. */
  constructor(events: BodyEvents, { isDeclared }: { readonly isDeclared: boolean }) {
    this.#events = events
    this.#isDeclared = isDeclared
    this.#parser = createParser({
      maxBufferSize: maxLength,
      onEvent: event => this.#data(event.data, event.event),
      onError: ({ type }) => {
        if (type !== 'max-buffer-size-exceeded') return
        this.#kind = 'other'
        this.#whole = '(an event without an end)'
      },
    })
  }

  /** The stream has said that it is over; its connection may stay open all the same. */
  get isDone(): boolean {
    return this.#isDone
  }

  /** The body was one whole JSON value. */
  get isJson(): boolean {
    return this.#kind === 'json'
  }

  /** The beginning of a body that is neither a stream nor JSON. */
  get other(): string | undefined {
    return this.#kind === 'other' ? this.#whole : undefined
  }

  /** Gives the text of the bytes, as far as its characters are whole. */
  feed(bytes: Uint8Array): string {
    const text = this.#text.decode(bytes, { stream: true })
    this.#add(text)
    return text
  }

  /** The connection has ended: an event without its blank line counts, and a whole JSON body is parsed. */
  end(): void {
    this.#add(this.#text.decode())
    if (this.#kind === 'events') this.#parser.feed('\n\n')
    if (this.#kind !== 'json') return
    const value = parseJson(this.#whole)
    if (value === undefined) this.#kind = 'other'
    else this.#events.onValue(value, undefined)
  }

  #add(text: string): void {
    if (this.#kind === 'unknown') this.#begin(text)
    else if (this.#kind === 'events') this.#parser.feed(text)
    else if (this.#whole.length < maxLength) this.#whole += text
  }

  #begin(text: string): void {
    this.#whole += text
    const start = this.#whole.trimStart()
    if (start === '') return
    if (start.startsWith('{') || start.startsWith('[')) this.#kind = 'json'
    else if (eventField.test(start) || (this.#isDeclared && !start.startsWith('<'))) this.#kind = 'events'
    else if (!couldBeEvent(start)) this.#kind = 'other'
    if (this.#kind !== 'events') return
    this.#whole = ''
    this.#parser.feed(start)
  }

  #data(data: string, event: string | undefined): void {
    const text = data.trim()
    if (text === '' || this.#isDone) return
    if (text === done) return void (this.#isDone = true)
    const value = parseJson(text)
    if (value === undefined) this.#events.onSkipped(text)
    else this.#events.onValue(value, event)
  }
}

/** Comments and blank lines alone: the host is there, and has nothing to say yet. */
export function isKeepAlive(text: string): boolean {
  return text.split(/[\r\n]+/).every(line => line === '' || line.startsWith(':'))
}

const eventField = /^(:|(data|event|id|retry)(:|\r|\n))/
const fieldStarts = ['data', 'event', 'id', 'retry']

/** The first field's name may not be all there yet. */
function couldBeEvent(start: string): boolean {
  return fieldStarts.some(field => field.startsWith(start))
}
