import { createHash } from 'node:crypto'
import type { ContentBlock, ImageBlock, Message, ToolCallBlock, ToolResultBlock } from '@dsh/protocol'
import { argumentsObject } from './arguments.ts'
import type { WireNoticeCode } from './notice.ts'
import type { Quirks } from './quirks.ts'
import { jsonString, wireText } from './wire-text.ts'

/** One message of the wire that a message of ours becomes; all but a result are whole JSON objects. */
export type WirePart =
  | { readonly kind: 'plain'; readonly role: 'user' | 'assistant'; readonly json: string }
  /** An assistant message with tool calls; each must be answered directly after it. */
  | { readonly kind: 'calls'; readonly json: string; readonly calls: readonly WireCall[] }
  | {
      readonly kind: 'result'
      readonly callId: string
      /** What follows the id in the JSON of the tool message. */
      readonly rest: string
      /** The content parts of a user message with the pictures of this result. */
      readonly pictures: readonly string[]
      /** The same result as the JSON of a user message, where there is no call to answer. */
      loose(): string
    }

export interface WireCall {
  readonly id: string
  readonly wireId: string
}

export interface MessageEncoding {
  readonly quirks: Quirks
  readonly provider: string
  /** The data URL of a picture, or undefined while it is not loaded; loading is asked for by calling it. */
  picture(block: ImageBlock): PictureState
  report(code: WireNoticeCode, text: string, message: Message, count?: number): void
}

/** `text` stands for a picture that cannot be shown. */
export type PictureState =
  | { readonly url: string; readonly text?: undefined }
  | { readonly text: string; readonly url?: undefined }

export function encodeMessage(message: Message, encoding: MessageEncoding): readonly WirePart[] {
  return new MessageEncoder(message, encoding).parts()
}

class MessageEncoder {
  readonly #message: Message
  readonly #encoding: MessageEncoding
  #lone = 0

  constructor(message: Message, encoding: MessageEncoding) {
    this.#message = message
    this.#encoding = encoding
  }

  parts(): readonly WirePart[] {
    const { role, content } = this.#message
    const results = content.filter(block => block.type === 'tool-result')
    const others = content.filter(block => block.type !== 'tool-result')
    const parts: WirePart[] = results.map(block => this.#result(block))
    if (role === 'assistant') parts.push(...this.#assistant(others))
    else if (others.length > 0 || results.length === 0) parts.push(this.#said(others))
    if (this.#lone > 0) {
      this.#report(
        'LONE_SURROGATE',
        `message ${this.#message.id} holds ${this.#lone} half characters`,
        this.#lone,
      )
    }
    return parts
  }

  /** Also system text that is not at the head, where many hosts refuse it. */
  #said(blocks: readonly ContentBlock[]): WirePart {
    return { kind: 'plain', role: 'user', json: `{"role":"user","content":${this.#userContent(blocks)}}` }
  }

  #userContent(blocks: readonly ContentBlock[]): string {
    const parts = this.#contentParts(blocks)
    if (parts.every(part => part.text !== undefined)) {
      const text = parts.map(part => part.text).join('\n')
      return this.#string(text === '' ? wireText.noContent : text)
    }
    const shown = parts.filter(part => part.text !== '')
    return `[${shown.map(part => part.json ?? this.#textPart(part.text ?? '')).join(',')}]`
  }

  #contentParts(blocks: readonly ContentBlock[]): { readonly text?: string; readonly json?: string }[] {
    return blocks.map(block => {
      if (block.type !== 'image') return { text: this.#textOf([block]) }
      const { url, text } = this.#encoding.picture(block)
      return url === undefined ? { text } : { json: picturePart(url) }
    })
  }

  #assistant(blocks: readonly ContentBlock[]): WirePart[] {
    const calls = blocks.filter(block => block.type === 'tool-call')
    const text = this.#textOf(
      blocks.filter(block => block.type !== 'reasoning' && block.type !== 'tool-call'),
      '',
    )
    if (calls.length > 0) return [this.#calling(blocks, text, calls)]
    if (text.trim() === '') {
      this.#report(
        'EMPTY_MESSAGE',
        `assistant message ${this.#message.id} has nothing to send and is left out`,
      )
      return []
    }
    const json = `{"role":"assistant","content":${this.#string(text)}${this.#details()}}`
    return [{ kind: 'plain', role: 'assistant', json }]
  }

  #calling(blocks: readonly ContentBlock[], text: string, calls: readonly ToolCallBlock[]): WirePart {
    const { emptyContent, reasoningReplay, reasoningReplayField } = this.#encoding.quirks
    const content = text === '' ? JSON.stringify(emptyContent) : this.#string(text)
    const thought = blocks.map(block => (block.type === 'reasoning' ? block.text : '')).join('')
    const reasoning = reasoningReplay === 'never' ? '' : `,"${reasoningReplayField}":${this.#string(thought)}`
    const wire: WireCall[] = []
    const taken = new Set<string>()
    const encoded = calls.map(call => {
      const wireId = this.#unique(wireCallId(call.id, this.#encoding.quirks.maxCallIdLength), taken)
      wire.push({ id: call.id, wireId })
      return this.#call(call, wireId)
    })
    const json = `{"role":"assistant","content":${content}${reasoning}${this.#details()},"tool_calls":[${encoded.join(',')}]}`
    return { kind: 'calls', json, calls: wire }
  }

  #call(call: ToolCallBlock, wireId: string): string {
    const name = call.name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
    if (name !== call.name) {
      this.#report('RENAMED_CALL', `the call of "${call.name}" goes out as a call of "${name}"`)
    }
    const args = argumentsObject(call.arguments)
    if (args.changed) {
      this.#report('BAD_ARGUMENTS', `the arguments of call ${call.id} are no sound JSON object`)
    }
    return `{"id":${this.#string(wireId)},"type":"function","function":{"name":"${name}","arguments":${this.#string(args.text)}}}`
  }

  #unique(id: string, taken: Set<string>): string {
    let unique = id
    for (let n = 2; taken.has(unique); n++) unique = `${id}_${n}`
    taken.add(unique)
    return unique
  }

  #result(block: ToolResultBlock): WirePart {
    const parts = this.#contentParts(block.content)
    const pictures = parts.flatMap(part => part.json ?? [])
    const text = parts.map(part => part.text ?? wireText.pictureFollows).join('\n')
    const content = this.#string(text === '' ? wireText.noOutput : text)
    return {
      kind: 'result',
      callId: block.toolCallId,
      rest: `,"content":${content}}`,
      pictures,
      loose: () =>
        `{"role":"user","content":${this.#string(`${wireText.looseResult}\n${text || wireText.noOutput}`)}}`,
    }
  }

  /** The text of `blocks`; what this format has no word for becomes a line that says so. */
  #textOf(blocks: readonly ContentBlock[], separator = '\n'): string {
    return blocks
      .map(block => {
        if (block.type === 'text') return block.text
        if (block.type === 'reasoning') return ''
        const { type } = block as { readonly type: string }
        this.#report(
          'UNKNOWN_BLOCK',
          `a block of type "${type}" in message ${this.#message.id} cannot be sent`,
        )
        return wireText.unknownBlock(type)
      })
      .join(separator)
  }

  /** Notes of this very host, which it wants back unchanged. */
  #details(): string {
    const { source } = this.#message
    if (source.kind !== 'model' || source.provider !== this.#encoding.provider) return ''
    const response = source.replayState?.response
    if (typeof response !== 'object' || response === null || !('reasoning_details' in response)) return ''
    return `,"reasoning_details":${JSON.stringify(response['reasoning_details'])}`
  }

  #textPart(text: string): string {
    return `{"type":"text","text":${this.#string(text)}}`
  }

  #string(text: string): string {
    return jsonString(text, count => void (this.#lone += count))
  }

  #report(code: WireNoticeCode, text: string, count?: number): void {
    this.#encoding.report(code, text, this.#message, count)
  }
}

function picturePart(url: string): string {
  return `{"type":"image_url","image_url":{"url":"${url}"}}`
}

/** The id itself where the host takes it; the same id always gives the same other one. */
function wireCallId(id: string, maxLength: number): string {
  if (id !== '' && id.length <= maxLength) return id
  return `call_${createHash('sha256').update(id).digest('hex').slice(0, 24)}`
}
