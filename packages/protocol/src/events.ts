import type {
  AssistantMessage,
  CallId,
  CommandId,
  JsonValue,
  LlmFailure,
  SessionId,
  StreamChunk,
  TokenUsage,
  ToolResultMessage,
  ToolSchema,
  UserMessage,
} from './messages.ts'

/** Raised when an older reader could no longer read a new log with full meaning; a new event type never raises it. */
export const sessionFormatVersion = 0

/** Facts of a session's birth, outside its log, written once. */
export interface SessionHeader {
  readonly version: number
  readonly id: SessionId
  /** Epoch milliseconds. */
  readonly createdAt: number
  /** Absolute. */
  readonly cwd?: string
  readonly parentSession?: SessionId
  /** How many leading events a fork inherited. */
  readonly seedLength?: number
  /** Absent for the sessions of a person. */
  readonly origin?: 'subagent' | 'replay'
  readonly delegationDepth?: number
  readonly agentPreset?: string
}

/** What a loop asks of a model, apart from the messages. */
export interface LlmCallConfig {
  readonly provider: string
  readonly model: string
  readonly reasoningEffort?: string
  readonly temperature?: number
  readonly maxTokens?: number
  readonly stop?: readonly string[]
}

/** The request envelope. Empty system, tools and markers are absent, never empty. */
export interface EpochHeader {
  readonly config: LlmCallConfig
  /** Fields of `config` that the adapter filled in, not the caller. */
  readonly adapterDefaults?: { readonly reasoningEffort?: true; readonly maxTokens?: true }
  readonly system?: string
  readonly tools?: readonly ToolSchema[]
}

/** Facts of the route, not of the request. `contextWindow` is absent where the provider tells none. */
export interface RequestContext {
  readonly provider: string
  readonly model: string
  readonly contextWindow?: number
}

export type AgentCancelCause =
  | { readonly kind: 'user' }
  | { readonly kind: 'parent' }
  | { readonly kind: 'hook'; readonly reason: string }
  | { readonly kind: 'disposed' }

/** Why a turn ended, by kind. Plugins merge their own in. */
export interface TurnEndReasonMap {
  completed: { readonly kind: 'completed' }
  aborted: { readonly kind: 'aborted'; readonly reason: AgentCancelCause | { readonly kind: 'legacy' } }
  blocked: { readonly kind: 'blocked' }
  error: { readonly kind: 'error'; readonly error: LlmFailure }
  'max-tokens': { readonly kind: 'max-tokens' }
  /** Written by crash repair alone. */
  interrupted: { readonly kind: 'interrupted' }
  /** Written by the closers of a fork alone. */
  forked: { readonly kind: 'forked' }
}

export type TurnEndReason = TurnEndReasonMap[keyof TurnEndReasonMap]

export interface TodoItem {
  readonly content: string
  readonly status: 'pending' | 'in_progress' | 'completed'
}

export interface ToolErrorInfo {
  readonly name: string
  readonly code: string
  readonly reason?: string
}

export type InboxTarget = 'next-turn' | 'next-step'

export interface CommandSource {
  readonly kind: 'user'
}

/**
 * Facts a session log may hold, by type. Plugins merge their own in.
 *
 * Payloads are JSON and never change meaning: a new meaning is a new type. `turn` and `step` start at 1;
 * `step` starts again in each turn.
 */
export interface SessionEventMap {
  'turn/start': { readonly turn: number }
  'turn/end': { readonly turn: number; readonly reason: TurnEndReason }
  'step/start': { readonly turn: number; readonly step: number }
  'step/end': { readonly turn: number; readonly step: number }
  'user/message': UserMessage
  'assistant/chunk': { readonly turn: number; readonly step: number; readonly chunk: StreamChunk }
  'assistant/message': {
    readonly turn: number
    readonly step: number
    readonly message: AssistantMessage
    readonly usage?: TokenUsage
    /** The visible beginning of an answer that was cancelled or cut off by a crash. */
    readonly interrupted?: true
    /** Tool calls dropped because the answer hit the output limit. */
    readonly truncatedToolCalls?: number
  }
  /** Logged when the call starts. `arguments` is the model's raw text. */
  'tool/call': {
    readonly turn: number
    readonly step: number
    readonly callId: CallId
    readonly name: string
    readonly arguments: string
  }
  /** With a store: logged and flushed right before a top-level tool body runs. */
  'tool/start': { readonly turn: number; readonly step: number; readonly callId: CallId }
  'tool/result': {
    readonly turn: number
    readonly step: number
    readonly message: ToolResultMessage
    readonly error?: ToolErrorInfo
    readonly meta?: JsonValue
  }
  /** Tools that wait to be asked for, and from here on are part of the request. */
  'tools/offered': { readonly names: readonly string[] }
  /** The whole list, replacing the one before. */
  'todo/write': { readonly todos: readonly TodoItem[] }
  'request/header': { readonly header: EpochHeader; readonly reason: 'initial' | 'resume' | 'change' }
  'request/context': RequestContext
  /** Ends what earlier lives of the session wrote; only the Session constructor writes it. */
  'session/end-seed': { readonly inherited?: true }
  /** Whether lists leave the session out; working on it brings it back. */
  'session/archived': { readonly archived: boolean }
  'agent/inbox/spliced': {
    readonly target: InboxTarget
    readonly start: number
    readonly removedCount?: number
    readonly inserted: readonly UserMessage[]
    readonly outcome?: 'canceled'
  }
  'command/run': {
    readonly commandId: CommandId
    readonly name: string
    readonly args?: string
    readonly source: CommandSource
  }
  'command/done': {
    readonly commandId: CommandId
    readonly kind: 'success' | 'error'
    readonly text?: string
    readonly sourceEventSeq?: number
  }
}

export type SessionEventType = keyof SessionEventMap

/** The types that put a message into the model history. Widening it raises the format version. */
export const surfaceEventTypes = ['user/message', 'assistant/message', 'tool/result'] as const

export type SurfaceEventType = (typeof surfaceEventTypes)[number]

/** How a surface event joins the surface: at its end, or in place of the nodes `start`…`end` (seqs, inclusive). */
export type SurfaceOp = 'append' | { readonly op: 'replace'; readonly start: number; readonly end: number }

/** What `append` must be told for a surface event. */
export interface SurfaceIntent {
  readonly surfaceOp: SurfaceOp
  /** Earlier events this one stands on. Empty only on 'assistant/message': its stream was empty. */
  readonly sourceEventSeqs?: readonly number[]
  readonly ignorable?: true
}

interface EventEnvelope<T extends SessionEventType> {
  readonly type: T
  /** Equals the position in the log. */
  readonly seq: number
  /** Epoch milliseconds; may run backwards. */
  readonly time: number
  readonly data: SessionEventMap[T]
  /** A reader that does not know the type may skip it. Absent = it must not. */
  readonly ignorable?: true
}

/** One fact of the log. The union is open: switch on `type` with a default arm. */
export type SessionEvent<T extends SessionEventType = SessionEventType> = {
  [K in T]: EventEnvelope<K> &
    (K extends SurfaceEventType
      ? { readonly surfaceOp: SurfaceOp; readonly sourceEventSeqs?: readonly number[] }
      : { readonly surfaceOp?: undefined; readonly sourceEventSeqs?: undefined })
}[T]
