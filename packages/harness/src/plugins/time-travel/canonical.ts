import type { LlmCallConfig, Message, ToolSchema } from '@dsh/protocol'

/** What kind of thing a piece of a request is, in the order in which providers read them. */
export type RequestPart = 'route' | 'config' | 'tools' | 'system' | 'messages'

/** A request, or what is compared of one. */
export interface RequestParts extends Pick<LlmCallConfig, 'provider' | 'model' | 'reasoningEffort'> {
  readonly tools?: readonly ToolSchema[]
  readonly system?: string
  readonly messages: readonly Pick<Message, 'role' | 'content'>[]
}

/** A part of the beginning that a provider's cache can hold: equal texts are equal requests. */
export interface RequestPiece {
  readonly part: RequestPart
  /** Of a message its place in the history, of a tool its place in the list. */
  readonly index: number
  readonly text: string
}

/**
 * A request as the pieces of its prefix. First comes the route, then what changes how the prompt is read, then tools,
 * system text and history. Ids of messages, and limits that touch the answer alone, are no part of it.
 */
export function piecesOf(request: RequestParts): readonly RequestPiece[] {
  const { provider, model, reasoningEffort, tools = [], system, messages } = request
  const piece = (part: RequestPart, index: number, text: string): RequestPiece => ({ part, index, text })
  return [
    piece('route', 0, `${provider}/${model}`),
    ...(reasoningEffort === undefined ? [] : [piece('config', 0, `reasoning effort ${reasoningEffort}`)]),
    ...tools.map((tool, index) => piece('tools', index, JSON.stringify(tool))),
    ...(system === undefined ? [] : [piece('system', 0, system)]),
    ...messages.map(({ role, content }, index) =>
      piece('messages', index, JSON.stringify({ role, content })),
    ),
  ]
}

/** Bytes of UTF-8 in a list of pieces. */
export function bytesOf(pieces: Iterable<RequestPiece>): number {
  let bytes = 0
  for (const { text } of pieces) bytes += Buffer.byteLength(text)
  return bytes
}
