import type { CallId, JsonValue } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { ApprovalOutcome } from '../../core/tools/index.ts'
import type { Waterfall } from '../../kernel/index.ts'
import type { SandboxMode } from '../sandbox/events.ts'
import type { ApprovalPolicy } from './events.ts'

/** One call that somebody has to allow, as those who answer are given it. */
export interface ApprovalQuestion {
  readonly id: string
  readonly agent: Agent
  readonly toolName: string
  readonly callId?: CallId
  /** Frozen: what is allowed is what runs. */
  readonly arguments: JsonValue
  /** SHA-256 of the arguments, in hex. */
  readonly digest: string
  readonly reason?: string
  /** Aborts when an answer is no longer wanted; a later one is discarded. */
  readonly signal: AbortSignal
}

export interface ApprovalAnswer {
  readonly outcome: ApprovalOutcome
  /** For the model. */
  readonly reason?: string
  /** What was allowed, where the answer comes from afar: that of other arguments allows nothing. */
  readonly digest?: string
}

/** What each session may do, as `ctx.permissions`. The log's last word counts, else the configuration. */
export interface Permissions {
  modeOf(session: Session | undefined): SandboxMode
  policyOf(session: Session | undefined): ApprovalPolicy
  /**
   * Appends an event unless the log says so already: what is only configured may be configured otherwise when the session
   * is resumed. Calls that were asked for already keep their answer.
   */
  setMode(session: Session, mode: SandboxMode): void
  setPolicy(session: Session, policy: ApprovalPolicy): void
}

declare module '../../kernel/index.ts' {
  interface Services {
    permissions: Permissions
  }

  interface Events {
    /** Asks whoever can answer; one that cannot calls `next`. Without an answer the call is refused. */
    'approval/request': Waterfall<[question: ApprovalQuestion], Promise<ApprovalAnswer | undefined>>
  }
}
