import type {
  AgentCancelCause,
  InboxTarget,
  LlmCallConfig,
  LlmFailure,
  SessionHeader,
  SessionId,
  SessionEvent,
  UserMessage,
} from '@dsh/protocol'
import type { Context, Disposer, Emit, Serial, Veto, Waterfall } from '../../kernel/index.ts'
import type { RetryPolicy } from '../llm/index.ts'
import type { Session } from '../session/index.ts'
import type { Inbox } from './inbox.ts'
import type { AgentRegistry } from './registry.ts'

/** How an agent asks its model. Plugins merge their own in. */
export interface AgentOptions {
  readonly provider?: string
  readonly model?: string
  /** Positive; else creation throws a TypeError. */
  readonly maxTokens?: number
}

export type AgentStatus = 'idle' | 'running'

export interface CancelOptions {
  /** Leaves what is queued where it is. */
  readonly keepInbox?: boolean
}

/** Why a session's life began. */
export type SessionStartSource = 'startup' | 'resume' | 'clear' | 'compact'

/** One session with the loop that drives it. Disposing it is the right of whoever holds its `AgentHandle`. */
export interface Agent {
  /** The id of its session. */
  readonly id: SessionId
  readonly options: AgentOptions
  readonly session: Session
  readonly inbox: Inbox
  readonly status: AgentStatus
  /** Tagged with the agent: what is registered here is for this agent only and ends with it. */
  readonly ctx: Context

  /** Ends the running turn with `cause` and clears what is queued. The first cause wins; idle is a no-op but for the queue. */
  cancel(cause: AgentCancelCause, options?: CancelOptions): void
  /** Resolves when nothing runs any more, turns that follow included; never rejects. */
  whenIdle(): Promise<void>
  /** Runs `job` while no turn may start. Throws at once unless the agent is idle. */
  runMaintenance<T>(job: (signal: AbortSignal) => Promise<T>): Promise<T>
  /**
   * Lets nothing begin until the function it gives is called; what wakes the agent meanwhile does so then. It stays idle,
   * and can be cancelled and disposed. Throws AGENT_BUSY unless the agent is idle.
   */
  hold?(): Disposer
  send(message: UserMessage, target: InboxTarget, wakeup: boolean): void
  /** Queues a turn of its own. */
  followup(message: UserMessage): void
  /** Joins the next step; an idle agent starts a turn. */
  steer(message: UserMessage): void
  /** Context for the next request; wakes nobody. */
  inject(message: UserMessage): void
}

export interface AgentHandle {
  readonly agent: Agent
  /** What had to be mended before a stored session could go on, one sentence each, for the person. */
  readonly notices?: readonly string[]
  /** Resolves after the driver stopped, the last flush is done and everything of the agent is undone. */
  dispose(): Promise<void>
}

/** Runs right before the agent is published. */
export interface AgentSetupCommit {
  commit(): void
}

/** Composes an agent nobody can see yet: what it registers on `agentCtx` is there before the first turn. */
export type AgentSetup = (agentCtx: Context) => AgentSetupCommit | void | Promise<AgentSetupCommit | void>

export interface CreateAgentOptions {
  readonly sessionId?: SessionId
  readonly meta?: Partial<Omit<SessionHeader, 'version' | 'id'>>
  readonly seed?: readonly SessionEvent[]
  readonly agentOptions?: AgentOptions
  readonly signal?: AbortSignal
  readonly setup?: AgentSetup
}

export interface ResumeAgentOptions {
  readonly resumeSessionId: SessionId
  readonly agentOptions?: AgentOptions
  readonly signal?: AbortSignal
  readonly setup?: AgentSetup
}

/** Makes agents; the loop registers itself as one. */
export interface AgentFactory {
  createAgent(owner: Context, options: CreateAgentOptions): Promise<AgentHandle>
  resume(owner: Context, options: ResumeAgentOptions): Promise<AgentHandle>
}

export type PreStepDecision =
  | { readonly kind: 'reject' }
  | { readonly kind: 'enter'; readonly messages: readonly UserMessage[] }

/** undefined = let the turn fail. */
export type RequestErrorAction = { readonly kind: 'retry' } | undefined

declare module '../../kernel/index.ts' {
  interface Services {
    agents: AgentRegistry
  }

  interface Context {
    /** The agent whose scope this context is in. */
    readonly agent: Agent | undefined
  }

  interface Events {
    'agent/created': Veto<[{ readonly agent: Agent }]>
    'agent/session-start': Emit<[{ readonly agent: Agent; readonly source: SessionStartSource }]>
    'agent/disposed': Emit<[{ readonly agent: Agent }]>
    'agent/status': Emit<[{ readonly agent: Agent; readonly status: AgentStatus }]>
    'agent/inbox/inserted': Emit<[{ readonly agent: Agent; readonly message: UserMessage }]>
    'agent/inbox/discarded': Emit<[{ readonly agent: Agent; readonly message: UserMessage }]>
    'agent/inbox/claimed': Emit<
      [{ readonly agent: Agent; readonly message: UserMessage; readonly turn: number }]
    >
    'agent/pre-step': Waterfall<
      [
        {
          readonly agent: Agent
          readonly messages: readonly UserMessage[]
          readonly turn: number
          readonly step: number
          readonly signal: AbortSignal
        },
      ],
      Promise<PreStepDecision>
    >
    'agent/request': Waterfall<
      [{ readonly agent: Agent; readonly turn: number; readonly step: number; readonly signal: AbortSignal }],
      Promise<LlmCallConfig>
    >
    'agent/request-error': Waterfall<
      [
        {
          readonly agent: Agent
          readonly turn: number
          readonly step: number
          readonly provider: string
          readonly failure: LlmFailure
          readonly retryPolicy?: RetryPolicy
          readonly signal: AbortSignal
        },
      ],
      Promise<RequestErrorAction>
    >
    /** A listener that wants the turn to go on steers. */
    'agent/turn-stopping': Serial<
      [{ readonly agent: Agent; readonly turn: number; readonly signal: AbortSignal }]
    >
    'agent/cancel-requested': Emit<[{ readonly agent: Agent; readonly cause: AgentCancelCause }]>
    /** The driver stopped with `pending` still queued, or gives back a claimed batch that never reached the model. */
    'agent/parked': Emit<
      [
        {
          readonly agent: Agent
          readonly pending: readonly UserMessage[]
          readonly returned: readonly UserMessage[]
        },
      ]
    >
    'agent/error': Emit<
      [{ readonly agent: Agent; readonly turn: number; readonly step: number; readonly error: unknown }]
    >
  }
}

declare module '../tools/index.ts' {
  interface ToolExecutionInput {
    readonly agent?: Agent
  }

  interface ApprovalRequest {
    readonly agent?: Agent
  }
}

declare module '../prompt/index.ts' {
  interface AssembleContext {
    readonly agent?: Agent
  }
}
