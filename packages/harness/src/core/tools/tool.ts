import type { CallId, ContentBlock, JsonValue, ToolErrorInfo, ToolSchema, UserMessage } from '@dsh/protocol'
import type { Emit, Veto, Waterfall } from '../../kernel/index.ts'
import type { ToolEffect } from './effect.ts'

/** What a caller hands to `ctx.tools.execute`. Higher layers merge in who is asking. */
export interface ToolExecutionInput {
  readonly callId: CallId
  /** The call of the model that this one serves; its own id where nothing nests. */
  readonly rootCallId?: CallId
  readonly name: string
  /** Parsed JSON. */
  readonly arguments: unknown
  /** The token of the execution that makes this call, for calls made by a tool. */
  readonly parent?: symbol
  readonly signal: AbortSignal
}

/** One call as the pipeline sees it; arguments are a frozen snapshot. */
export interface ToolExecution extends ToolExecutionInput {
  readonly rootCallId: CallId
  readonly arguments: JsonValue
  readonly token: symbol
}

/** The same around the body: a wrapper may put its own signal in. */
export interface ToolDispatchExecution extends Omit<ToolExecution, 'signal'> {
  signal: AbortSignal
}

/** What the body of a tool gets besides its arguments. */
export interface ToolRunContext extends ToolExecution {
  /** Puts a message into the model's view behind this call's result. */
  deferContext(message: UserMessage): void
  /** The turn is over with this result, unless it fails. */
  concludeTurn(): void
}

export interface ToolExecutionSuccess {
  readonly isError: false
  readonly value: JsonValue
  readonly content: readonly ContentBlock[]
  readonly meta?: JsonValue
  readonly additionalContexts?: readonly UserMessage[]
  readonly concludesTurn?: true
}

export interface ToolExecutionFailure {
  readonly isError: true
  readonly error: { readonly message: string; readonly info?: ToolErrorInfo }
  readonly content: readonly ContentBlock[]
  readonly meta?: JsonValue
  readonly additionalContexts?: readonly UserMessage[]
}

export type ToolExecutionResult = ToolExecutionSuccess | ToolExecutionFailure

export type PreToolDecision =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly reason: string }
  | { readonly kind: 'ask'; readonly reason?: string }

/** `content` changes what is shown, `value` what the call gave; not both. */
export type PostToolDecision =
  | {
      readonly kind: 'accept'
      readonly content?: readonly ContentBlock[]
      readonly value?: JsonValue
      readonly additionalContexts?: readonly UserMessage[]
    }
  | {
      readonly kind: 'block'
      readonly feedback: string
      readonly additionalContexts?: readonly UserMessage[]
    }

/** What a model is offered: all tools, a program that calls them (`run_code`), or both. */
export type ToolPresentation = 'native' | 'code' | 'both'

/** Gives a reason to refuse, or undefined; it cannot allow what something else refused. */
export type ToolGuard = (execution: ToolExecution) => string | undefined

export type ToolExecutionMode = 'parallel' | 'exclusive'

export interface ToolRestriction {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

export interface ToolOutputDefinition {
  /** JSON Schema of every successful value. Without `validate` it stays inside the enforced subset. */
  readonly schema: { readonly [key: string]: JsonValue }
  /** Says what is wrong with a value in place of `schema`, path first; empty = nothing. */
  validate?(value: JsonValue): readonly string[] | Promise<readonly string[]>
  /** What the model sees of a value. */
  render(args: JsonValue, value: JsonValue): readonly ContentBlock[]
  /** What surfaces are given besides, kept in the log as `meta`. */
  presentationMeta?(args: JsonValue, value: JsonValue): JsonValue | undefined
}

/** How a call or its result is drawn; a closed set of cards that every surface knows. */
export interface ToolView {
  readonly card: 'generic' | 'terminal' | 'diff' | 'read' | 'search' | 'web'
  readonly title: string
  readonly data?: JsonValue
}

/** A tool in its registered form; `defineTool` makes one from friendlier parts. */
export interface ToolDefinition extends ToolSchema {
  readonly output: ToolOutputDefinition
  /** Gives the value, or throws. Asynchronous work must end when `exec.signal` aborts. */
  execute(args: unknown, exec: ToolRunContext): unknown
  /** Bounds or replaces the final content, once, whatever happened before; undefined keeps it. */
  finalizeContent?(exec: ToolExecution, result: ToolExecutionResult): readonly ContentBlock[] | undefined
  readonly timeoutMs?: number
  /** Can be called, but is offered to a model only once it was asked for: see `offerTools` in `core/prompt`. */
  readonly deferred?: true
  /** Only the exact answer true lets a call run beside others. */
  isConcurrencySafe?(args: unknown): boolean
  /** What the call would do to the world; absent = nothing that a permission speaks of. */
  effects?(args: unknown): Promise<readonly ToolEffect[]>
  presentCall?(args: unknown): ToolView | undefined
  presentResult?(
    args: unknown,
    result: {
      readonly content: readonly ContentBlock[]
      readonly isError: boolean
      readonly meta?: JsonValue
    },
  ): ToolView | undefined
}

/** Answers a call that policy wants asked; a plugin provides it as `ctx.approval`. Higher layers merge in who asks. */
export interface ApprovalRequest {
  readonly toolName: string
  readonly callId?: CallId
  readonly arguments?: JsonValue
  /** Of the execution that waits for the answer. */
  readonly token?: symbol
  readonly reason?: string
  readonly signal?: AbortSignal
}

export type ApprovalOutcome = 'allowed-once' | 'rejected' | 'cancelled' | 'unavailable'

export interface Approval {
  /** `reason` is the person's, for the model. */
  request(request: ApprovalRequest): Promise<{ readonly outcome: ApprovalOutcome; readonly reason?: string }>
}

declare module '../../kernel/index.ts' {
  interface Services {
    approval: Approval
  }

  interface Events {
    'tools/change': Veto<[]>
    'tools/pre-execute': Waterfall<[execution: ToolExecution], Promise<PreToolDecision>>
    'tools/execute': Waterfall<[execution: ToolDispatchExecution], Promise<ToolExecutionResult>>
    'tools/post-execute': Waterfall<
      [execution: ToolExecution, result: ToolExecutionResult],
      Promise<PostToolDecision>
    >
    'tools/result': Emit<[execution: ToolExecution, result: ToolExecutionResult]>
  }
}
