import { textOf } from '@dsh/protocol'
import type { ImageBlock, Message } from '@dsh/protocol'
import { encodeMessage } from './encode-message.ts'
import type { MessageEncoding, PictureState, WirePart } from './encode-message.ts'
import { HistoryWriter, openFrom } from './encode-history.ts'
import type { WireNoticeCode } from './notice.ts'
import type { Quirks } from './quirks.ts'
import { jsonString, wireText } from './wire-text.ts'

export interface HistoryRequest {
  readonly messages: readonly Message[]
  readonly system?: string | undefined
  /** Requests of one session share their beginning; absent = nothing is kept. */
  readonly session?: string | undefined
}

export interface EncoderOptions {
  readonly provider: string
  readonly quirks: Quirks
  report(code: WireNoticeCode, text: string, message?: Message, count?: number): void
}

/** The beginning of a session's history that cannot change any more, as bytes. */
interface Prefix {
  readonly messages: Message[]
  readonly segments: Uint8Array[]
}

/** Sessions whose beginnings are kept as bytes; the one used longest ago goes first. */
const keptSessions = 8

/**
 * The wire form of histories for one host and model.
 *
 * Messages are frozen, so each is encoded once, and the beginning that two requests of a session share is sent from
 * the same bytes: a request costs what is new in it.
 */
export class HistoryEncoder {
  readonly #options: EncoderOptions
  readonly #encoding: MessageEncoding
  readonly #parts = new WeakMap<Message, readonly WirePart[]>()
  readonly #pictures = new WeakMap<ImageBlock, PictureState>()
  readonly #prefixes = new Map<string, Prefix>()
  #missing: ImageBlock[] = []

  constructor(options: EncoderOptions) {
    this.#options = options
    this.#encoding = {
      quirks: options.quirks,
      provider: options.provider,
      picture: block => this.#picture(block),
      report: options.report,
    }
  }

  /**
   * The entries of `messages` as JSON with commas between, in pieces. Pictures that the encoder has not seen yet are
   * taken from `load`, which is asked once for each.
   */
  async encode(
    request: HistoryRequest,
    load: (block: ImageBlock) => Promise<PictureState>,
  ): Promise<readonly Uint8Array[]> {
    const loaded: ImageBlock[] = []
    for (;;) {
      const bytes = this.#encode(request)
      const missing = this.#missing
      if (missing.length === 0) {
        for (const block of loaded) this.#pictures.delete(block)
        return bytes
      }
      this.#missing = []
      this.#prefixes.delete(request.session ?? '')
      for (const block of missing) this.#pictures.set(block, await load(block))
      loaded.push(...missing)
    }
  }

  #encode({ messages, system, session }: HistoryRequest): Uint8Array[] {
    const head = this.#head(messages, system)
    const prefix = this.#prefix(messages, head.count, session)
    const writer = this.#writer()
    for (let at = prefix.messages.length; at < messages.length; at++) this.#add(messages[at], writer)
    const pieces = [Buffer.from(head.json), ...prefix.segments, Buffer.from(writer.finish())]
    return withoutFirstComma(pieces.filter(piece => piece.length > 0))
  }

  /** All that leads as system text becomes one message: many chat templates know one alone. */
  #head(messages: readonly Message[], system: string | undefined): { json: string; count: number } {
    const texts = system === undefined || system === '' ? [] : [system]
    let count = 0
    while (messages[count]?.role === 'system') texts.push(textOf(messages[count++]?.content ?? [], '\n'))
    if (texts.length === 0) return { json: '', count }
    const lone = (found: number): void =>
      this.#options.report(
        'LONE_SURROGATE',
        `the system prompt holds ${found} half characters`,
        undefined,
        found,
      )
    const content = jsonString(texts.join('\n\n'), lone)
    return { json: `,{"role":"${this.#options.quirks.systemRole}","content":${content}}`, count }
  }

  #prefix(messages: readonly Message[], from: number, session: string | undefined): Prefix {
    const known = session === undefined ? undefined : this.#prefixes.get(session)
    const prefix = known && isBeginning(known.messages, messages) ? known : emptyPrefix(messages, from)
    if (session === undefined) return prefix
    this.#prefixes.delete(session)
    this.#prefixes.set(session, prefix)
    if (this.#prefixes.size > keptSessions) this.#dropOldest()
    const end = openFrom(messages)
    if (end <= prefix.messages.length) return prefix
    const writer = this.#writer()
    for (let at = prefix.messages.length; at < end; at++) {
      const message = messages[at]
      if (message) prefix.messages.push(message)
      this.#add(message, writer)
    }
    addSegment(prefix.segments, Buffer.from(writer.finish()))
    return prefix
  }

  #dropOldest(): void {
    for (const session of this.#prefixes.keys()) return void this.#prefixes.delete(session)
  }

  #writer(): HistoryWriter {
    return new HistoryWriter(what => this.#options.report('MENDED_PAIRING', what))
  }

  #add(message: Message | undefined, writer: HistoryWriter): void {
    if (message === undefined) return
    let parts = this.#parts.get(message)
    if (parts === undefined) {
      const missing = this.#missing.length
      parts = encodeMessage(message, this.#encoding)
      if (this.#missing.length === missing) this.#parts.set(message, parts)
    }
    for (const part of parts) writer.add(part)
  }

  #picture(block: ImageBlock): PictureState {
    if (!this.#options.quirks.images) return { text: wireText.pictureUnwanted(block.attachment.mediaType) }
    const known = this.#pictures.get(block)
    if (known) return known
    this.#missing.push(block)
    return { text: '' }
  }
}

function emptyPrefix(messages: readonly Message[], from: number): Prefix {
  return { messages: messages.slice(0, from), segments: [] }
}

function isBeginning(known: readonly Message[], messages: readonly Message[]): boolean {
  if (known.length > messages.length) return false
  for (let at = 0; at < known.length; at++) if (known[at] !== messages[at]) return false
  return true
}

/** Joins neighbours of like size, so that there are few of them and each byte is copied a few times at most. */
function addSegment(segments: Uint8Array[], segment: Uint8Array): void {
  let last = segment
  for (let before = segments.at(-1); before && before.length <= last.length * 2; before = segments.at(-1)) {
    segments.pop()
    last = Buffer.concat([before, last])
  }
  segments.push(last)
}

function withoutFirstComma(pieces: readonly Uint8Array[]): Uint8Array[] {
  const [first, ...rest] = pieces
  return first === undefined ? [] : [first.subarray(1), ...rest]
}
