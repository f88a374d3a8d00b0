import type { CallId, JsonValue } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { ApprovalOutcome, ToolView } from '../../core/tools/index.ts'
import type { Emit, Waterfall } from '../../kernel/index.ts'
import type { SandboxMode, SandboxReadiness } from '../sandbox/index.ts'
import type { ApprovalPolicy, ApprovalScope, PermissionRule } from './events.ts'
import type { FiledRule, RulesFileState } from './rules-file.ts'

/** What a person may allow beyond this one call: for the session, or as a rule for its folder. */
export interface ApprovalProposal {
  /** Exactly what it covers, for people. */
  readonly text: string
  /** Without a folder; as a rule they are kept for the folder of the session. */
  readonly rules: readonly PermissionRule[]
}

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
  /** The whole command, path and change, where the tool can show them. */
  readonly view?: ToolView
  /** The narrowest first. */
  readonly proposals: readonly ApprovalProposal[]
  /** Aborts when an answer is no longer wanted; a later one is discarded. */
  readonly signal: AbortSignal
}

export interface ApprovalAnswer {
  readonly outcome: ApprovalOutcome
  /** For the model. */
  readonly reason?: string
  /** Default once. Only with one of the proposals is it more. */
  readonly scope?: ApprovalScope
  /** The place of what was chosen in `proposals`; 0 by default. */
  readonly proposal?: number
  /** With a rejection: what the model shall call instead. The call itself stays as it is recorded. */
  readonly replacement?: string
  /** What was asked, where the answer comes from afar: that of another question allows nothing. */
  readonly id?: string
  /** What was allowed, where the answer comes from afar: that of other arguments allows nothing. */
  readonly digest?: string
}

export interface ExplainRequest {
  readonly session?: Session | undefined
  readonly tool: string
  readonly arguments: JsonValue
}

/** What would become of a call, and why. */
export interface Explanation {
  readonly decision: 'allow' | 'ask' | 'deny'
  readonly because: string
  /** The rule that decided; `id` where it stands in the rules file. */
  readonly rule?: { readonly id?: string; readonly rule: PermissionRule }
  readonly mode: SandboxMode
  readonly sandbox: SandboxReadiness
}

declare module '../../core/tools/index.ts' {
  /** What each session may do beyond its mode. The log's last word counts, else the configuration. */
  interface Approval {
    policyOf(session: Session | undefined): ApprovalPolicy
    /**
     * Appends an event unless the log says so already: what is only configured may be configured otherwise when the
     * session is resumed. Calls that were asked for already keep their answer.
     */
    setPolicy(session: Session, policy: ApprovalPolicy): void
    /** Whether what `agent` asks for reaches somebody who could answer; where the configuration says yes, nobody is asked. */
    canAnswer(agent: Agent | undefined): boolean
    /** What the person allowed for the rest of the session. */
    grantsOf(session: Session): readonly PermissionRule[]
    /** From here on none of it counts any more. */
    forget(session: Session): void
    /** Runs nothing, asks nobody and writes nothing. */
    explain(request: ExplainRequest): Promise<Explanation>
    rules(): Promise<RulesFileState>
    /** Gives them as they stand in the file, where the same rule is not kept twice. */
    addRules(rules: readonly PermissionRule[]): Promise<readonly FiledRule[]>
    /** Throws UNKNOWN_RULE, with nothing done, where one of `ids` is not there. */
    removeRules(ids: readonly string[]): Promise<readonly FiledRule[]>
  }
}

declare module '../../kernel/index.ts' {
  interface Events {
    /** Asks whoever can answer; one that cannot calls `next`. Without an answer the call is refused. */
    'approval/request': Waterfall<[question: ApprovalQuestion], Promise<ApprovalAnswer | undefined>>
    /** A command is judged where no sandbox works; `reason` is for people. */
    'approval/unconfined': Emit<[agent: Agent | undefined, reason: string]>
  }
}
