import type { AssistantMessage, StreamChunk, ToolResultMessage, UserMessage } from '@dsh/protocol'
import type { ApprovalPolicy } from '../approval/events.ts'
import type { SandboxMode } from '../sandbox/events.ts'
import type { CanonicalRequest } from './portable.ts'
import type { ToolResult } from './tool-result.ts'

/** What a session said and heard, for running it again anywhere. */
export interface Recording {
  readonly requests: readonly RecordedRequest[]
}

/** One request, and all that followed from it up to the next one. */
export interface RecordedRequest {
  /** Counts the turns that asked something, from 1. */
  readonly turn: number
  /** From 1 in each turn. */
  readonly step: number
  /** From 1 in each step. */
  readonly attempt: number
  readonly request: CanonicalRequest
  /** What tools might do when it was asked; absent where the log does not say. */
  readonly permission?: RecordedPermission
  /** Messages that entered with the step; none for later attempts. */
  readonly entered: readonly RecordedMessage[]
  /** Parts of the history that something else stands for since the request before, in order. */
  readonly replaced?: readonly RecordedReplacement[]
  readonly answer: readonly StreamChunk[]
  /** `cut`: the turn was stopped in the middle of the answer. `silent`: before its first word. */
  readonly outcome: 'answered' | 'failed' | 'cut' | 'silent'
  /** In the order of the calls in the answer. */
  readonly results: readonly RecordedResult[]
  /** Why nothing more was asked in the turn although there are results: it was stopped, or a tool ended it. */
  readonly end?: 'stopped' | 'concluded'
}

export type RecordedMessage = Pick<UserMessage, 'content' | 'source'>

/** `count` entries of the history from `index` on, and what took their place. */
export type RecordedReplacement = { readonly index: number; readonly count: number } & (
  | ({ readonly type: 'user/message' } & Pick<UserMessage, 'content' | 'source'>)
  | ({ readonly type: 'assistant/message' } & Pick<AssistantMessage, 'content' | 'source'>)
  | ({ readonly type: 'tool/result' } & Pick<ToolResultMessage, 'content' | 'source'>)
)

export interface RecordedPermission {
  readonly mode?: SandboxMode
  readonly policy?: ApprovalPolicy
}

export interface RecordedResult extends ToolResult {
  readonly callId: string
  readonly name: string
  /** The raw text of the model. */
  readonly arguments: string
}
