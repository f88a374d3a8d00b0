/** A value that JSON keeps exactly: no undefined, no −0, NaN or infinity, no holes, no class instances. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type SessionId = Branded<'SessionId'>
export type CallId = Branded<'CallId'>
export type MessageId = Branded<'MessageId'>
export type CommandId = Branded<'CommandId'>

export const SessionId = (id: string): SessionId => id as SessionId
export const CallId = (id: string): CallId => id as CallId
export const MessageId = (id: string): MessageId => id as MessageId
export const CommandId = (id: string): CommandId => id as CommandId

export interface TextBlock {
  readonly type: 'text'
  readonly text: string
}

/** What the model thought before it answered; never part of the visible answer. */
export interface ReasoningBlock {
  readonly type: 'reasoning'
  readonly text: string
}

/** Names a stored picture by meaning; the bytes live in the session's artifacts. */
export interface ImageBlock {
  readonly type: 'image'
  readonly attachment: {
    readonly sha256: string
    readonly mediaType: string
    readonly bytes: number
    readonly width?: number
    readonly height?: number
  }
}

/** `arguments` is the JSON text as the model wrote it, parsed only when the call starts. */
export interface ToolCallBlock {
  readonly type: 'tool-call'
  readonly id: CallId
  readonly name: string
  readonly arguments: string
}

export interface ToolResultBlock {
  readonly type: 'tool-result'
  readonly toolCallId: CallId
  readonly content: readonly ContentBlock[]
  readonly isError?: boolean
}

/** Kinds of content a message may hold, by `type`. Plugins merge their own in. */
export interface ContentBlockMap {
  text: TextBlock
  reasoning: ReasoningBlock
  image: ImageBlock
  'tool-call': ToolCallBlock
  'tool-result': ToolResultBlock
}

export type ContentBlock = ContentBlockMap[keyof ContentBlockMap]

/** The text blocks of a message, joined; what is no text is left out. */
export function textOf(content: readonly ContentBlock[], separator = ''): string {
  return content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join(separator)
}

/** Private notes of the adapter that made a message, given back only to that same adapter. */
export interface ReplayState {
  readonly response?: JsonValue
  /** One entry per block of the message, by position. */
  readonly blocks?: readonly JsonValue[]
}

/** What kind of information a plugin's message is, for those who show it. */
export type MessageForm =
  | { readonly form?: undefined }
  | { readonly form: 'instructions' | 'catalog' | 'relay' | 'recall' }
  | {
      readonly form: 'snapshot'
      readonly sections: readonly { readonly name: string; readonly text: string }[]
    }
  /** `summary` has at most 120 characters. */
  | { readonly form: 'notice'; readonly summary: string }

/** Who made a message, by kind. Plugins merge their own in. */
export interface MessageSourceMap {
  user: { readonly kind: 'user' }
  plugin: { readonly kind: 'plugin'; readonly plugin: string } & MessageForm
  model: {
    readonly kind: 'model'
    readonly provider: string
    readonly model: string
    readonly replayState?: ReplayState
  }
  tool: { readonly kind: 'tool'; readonly callId: CallId }
}

export type MessageSource = MessageSourceMap[keyof MessageSourceMap]

/** One entry of the model history. Deep-frozen; `id` stays the same in inbox, log and request. */
export interface Message {
  readonly id: MessageId
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: readonly ContentBlock[]
  readonly source: MessageSource
}

export interface UserMessage extends Message {
  readonly role: 'user'
}

export interface AssistantMessage extends Message {
  readonly role: 'assistant'
  readonly source: MessageSourceMap['model']
}

/** A user-role message that holds exactly one tool-result block. */
export interface ToolResultMessage extends Message {
  readonly role: 'user'
  readonly content: readonly [ToolResultBlock]
  readonly source: MessageSourceMap['tool']
}

/** What a model learns of a tool; nothing else of a tool is ever sent. `parameters` is a JSON Schema. */
export interface ToolSchema {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly [key: string]: JsonValue }
}

/** Counts that do not overlap: billed input = input + cache reads + cache writes. */
export interface TokenUsage {
  /** Input that no cache served. */
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens?: number
  readonly cacheWriteTokens?: number
  /** Part of `outputTokens`. */
  readonly reasoningTokens?: number
}

/** One failed model request in facts. `code` is routed on; `message` is for people. */
export interface LlmFailure {
  readonly message: string
  readonly code: string
  /** HTTP status, 100–599. */
  readonly status?: number
  readonly providerRetryAfterMs?: number
  readonly requestId?: string
}

/** Why a model stopped. Plugins merge their own in. */
export interface FinishReasonMap {
  stop: { readonly kind: 'stop' }
  'tool-calls': { readonly kind: 'tool-calls' }
  'max-tokens': { readonly kind: 'max-tokens' }
  aborted: { readonly kind: 'aborted'; readonly failure: LlmFailure }
  error: { readonly kind: 'error'; readonly failure: LlmFailure }
}

export type FinishReason = FinishReasonMap[keyof FinishReasonMap]

/**
 * One piece of a model's answer; a closed union.
 *
 * `index` ties deltas to their block. A block starts once, deltas match its type, `block-end` carries the
 * whole block. At most one `usage`, then exactly one `finish`, then nothing.
 */
export type StreamChunk =
  | { readonly type: 'block-start'; readonly index: number; readonly blockType: ContentBlock['type'] }
  | { readonly type: 'text-delta'; readonly index: number; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly index: number; readonly text: string }
  | {
      readonly type: 'tool-call-delta'
      readonly index: number
      readonly id: CallId
      readonly name?: string
      readonly argumentsDelta: string
    }
  | { readonly type: 'block-end'; readonly index: number; readonly block: ContentBlock }
  | { readonly type: 'usage'; readonly usage: TokenUsage }
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly replayState?: ReplayState }
