import type { SessionId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { WiderAccess } from '../../core/tools/index.ts'
import type { Emit } from '../../kernel/index.ts'
import type { SandboxMode } from './events.ts'

/** What one process or one change of a file may do; made for each call anew. */
export interface SandboxExecutionPolicy {
  readonly mode: SandboxMode
  readonly network: boolean
  /** Absolute, links resolved, as all paths here. */
  readonly workspaceRoot: string
  /** The workspace first. Empty in read-only mode. */
  readonly writableRoots: readonly string[]
  /** Why the workspace is none of them, for models and people; undefined where it is, and where nothing needs a reason. */
  readonly noWorkspace?: string
  /** Below writable roots, and not writable all the same. */
  readonly protectedPaths: readonly string[]
  /** Neither listed nor read, but for what a root or a readable path further down opens again. */
  readonly unreadablePaths: readonly string[]
  /** Below unreadable paths, and read all the same. */
  readonly readablePaths: readonly string[]
  /** The session's own, which processes find as TMPDIR and as /tmp; also a writable root. Made where it is first needed. */
  readonly tempFolder?: string
  readonly sessionId?: SessionId
  /** What lets this very call do more than its session's mode. */
  readonly granted?: WiderAccess
}

export interface PolicyRequest {
  readonly session?: Session | undefined
  /** The execution a grant was given to; without one the session's standing mode counts. */
  readonly token?: symbol
}

/** Modes and boundaries by session, as `ctx.sandboxPolicy`. The log's last word counts, else the configuration. */
export interface SandboxPolicy {
  readonly defaultMode: SandboxMode
  /** Whether confined processes reach the network of the machine without a grant. */
  readonly hasNetwork: boolean
  modeOf(session: Session | undefined): SandboxMode
  /** Appends an event unless the log says so already. Calls that run keep their policy. */
  setMode(session: Session, mode: SandboxMode): void
  resolve(request: PolicyRequest): Promise<SandboxExecutionPolicy>
  /** Lets one execution, and no other, do more than its session's mode. */
  grant(token: symbol, access: WiderAccess): void
  /** What was granted to an execution. */
  grantOf(token: symbol): WiderAccess | undefined
  /** Why `policy` does not let `path` be written, for the model; `path` is absolute with links resolved as far as it exists. */
  writeRefusal(policy: SandboxExecutionPolicy, path: string): string | undefined
  /** The same for what is read or listed. */
  readRefusal(policy: SandboxExecutionPolicy, path: string): string | undefined
  /** Adds to what all sessions may reach, until the returned function is called. */
  extend(bounds: SandboxBounds): () => void
}

/** What people allow or deny beyond the defaults; paths are absolute or begin with `~/`. */
export interface SandboxBounds {
  /** Lets confined processes reach the network of the machine. */
  readonly network?: boolean
  readonly writable?: readonly string[]
  readonly unreadable?: readonly string[]
  /** Files and folders not to be written; relative ones are of each workspace. */
  readonly protect?: readonly string[]
}

/** A line of standard error by which a runner says that it, not the command, failed. */
export interface RunnerFailureRule {
  /** Default: any but 0. */
  readonly exitCodes?: readonly number[]
  /** Parts of one line, in any case. */
  readonly fatalSignatures: readonly string[]
  /** Whole lines that mean nothing, in any case. */
  readonly informationalLines?: readonly string[]
}

export interface ConfinedArgv {
  readonly argv: readonly [program: string, ...args: string[]]
  readonly enforcement: 'full' | 'partial'
  /** By which a refusal shows in what a program prints, in any case: a hint, never a ground to allow anything. */
  readonly denialSignatures: readonly string[]
  /** The same for what is not reached without network; none where there is one. */
  readonly networkSignatures?: readonly string[]
  readonly runnerFailureRules: readonly RunnerFailureRule[]
}

export type SandboxReadiness =
  | { readonly isReady: true; readonly runner: string; readonly enforcement: 'full' | 'partial' }
  /** `reason` is for people and says what to do. */
  | { readonly isReady: false; readonly reason: string }

/** Confines processes by wrapping the argv they are started with, as `ctx.sandbox`. */
export interface Sandbox {
  /** Asked once, at first use. */
  readiness(): Promise<SandboxReadiness>
  /**
   * The argv that runs `argv` under `policy`. Throws SANDBOX_UNAVAILABLE where nothing here can enforce it, and never
   * gives an argv that enforces less; full-access is returned as it is.
   */
  confine(
    argv: readonly [program: string, ...args: string[]],
    policy: SandboxExecutionPolicy,
    options?: ConfineOptions,
  ): Promise<ConfinedArgv>
}

export interface ConfineOptions {
  /** For a shell on a terminal of its own: keeps it as the controlling one. Never for a terminal of the person. */
  readonly terminal?: boolean
  /** What the harness shares with the process, which finds it read-only; `at` is below /dev. */
  readonly folder?: { readonly from: string; readonly at: string }
}

declare module '../../kernel/index.ts' {
  interface Services {
    sandbox: Sandbox
    sandboxPolicy: SandboxPolicy
  }

  interface Events {
    /** Git would run programs for these repositories, by their paths in the workspace, which came with a call. */
    'sandbox/planted': Emit<[agent: Agent | undefined, paths: readonly string[]]>
  }
}
