import type { Agent } from '../../core/agent/index.ts'
import type { Disposer } from '../../kernel/index.ts'
import type { SandboxMode } from '../sandbox/index.ts'
import type { CapturedOutput, TerminalSignal, TerminalSize } from '../subprocess/index.ts'

/** `pty-<n>`, never used twice by one service. */
export type PtySessionId = string

export type PtyStatus =
  | { readonly state: 'running' }
  | { readonly state: 'exited'; readonly exitCode: number | null; readonly signal: string | null }

/**
 * Why a send gave its result: a program waits for input, which is the shell at its prompt where `exitCode` is told;
 * nothing was printed for a while, which says nothing of the end; the time was up; the session is over.
 */
export type PtyWait = 'stdin_read' | 'inferred_idle' | 'timeout' | 'session_exit'

export interface PtySend {
  readonly text: string
  /** Keys to press behind the text, as `C-c`, `Enter`, `Up`. */
  readonly keys?: readonly string[]
  /** Presses Enter at the end. */
  readonly submit: boolean
  /**
   * `type` is what a person would type. `run` takes the text for one command of the shell, whatever it holds: it is run at
   * the prompt alone, where need be after what runs was interrupted, and silence is no end of it.
   */
  readonly form?: 'type' | 'run'
  /** Silence is no end. */
  readonly isPatient?: boolean
  /** Milliseconds; default is the backend's. */
  readonly timeoutMs?: number
  /** Interrupts what has the terminal; the send settles when that shows, at the latest after a moment. */
  readonly signal?: AbortSignal
}

export interface PtySendResult {
  readonly wait: PtyWait
  /** Of the last command, where the shell is at its prompt. */
  readonly exitCode?: number
  /** False where a command could not be run because what ran before does not end. */
  readonly isStarted: boolean
  readonly status: PtyStatus
}

export interface PtySendOperation {
  /** What came since, as the terminal got it. */
  readonly output: CapturedOutput
  /** Never rejects. */
  readonly result: Promise<PtySendResult>
}

export interface PtyPage {
  readonly lines: readonly string[]
  /** The number of the first line of the page, counted from 1; lines that are no longer kept count too. */
  readonly first: number
  /** As many came in all. */
  readonly total: number
  /** The number of the oldest line that is kept. */
  readonly oldest: number
}

/** One terminal as its backend gives it. */
export interface PtyBackendSession {
  readonly pid: number
  readonly status: PtyStatus
  /** What it may do for as long as it lives; undefined where nothing confines. */
  readonly mode: SandboxMode | undefined
  /** What its user should know: that there is no bash, or no terminal. One sentence each. */
  readonly notices: readonly string[]
  startSend(send: PtySend): PtySendOperation
  /** `offset` lines from the newest are left out. */
  read(range: { readonly offset: number; readonly count: number }): PtyPage
  /** To what has the terminal. False where nobody is there. Throws SHELL_FAILED for SIGKILL to the shell itself. */
  signal(signal: TerminalSignal): boolean
  resize(size: TerminalSize): void
  /** Ends everything in it. May be called again after it failed. */
  close(): Promise<void>
}

export interface PtyBackendSpec {
  readonly owner: Agent
  readonly sessionId: PtySessionId
  /** Absolute. */
  readonly cwd: string
  /** The call that opens it, for what was granted to that. */
  readonly token?: symbol
  readonly signal?: AbortSignal
}

export interface PtyBackend {
  readonly type: string
  /** Resolves when the session can be used; what it started is its own to end where it rejects. */
  spawn(spec: PtyBackendSpec): Promise<PtyBackendSession>
}

export interface PtySpawn {
  readonly type: string
  readonly name?: string
  /** Relative to the folder of the owner's session, which is the default. */
  readonly cwd?: string
  readonly token?: symbol
}

/** A session as its owner sees it. */
export interface PtySession {
  readonly sessionId: PtySessionId
  readonly name?: string
  readonly type: string
  readonly pid: number
  readonly status: PtyStatus
  readonly mode?: SandboxMode
  readonly notices: readonly string[]
}

/**
 * Terminals that last from call to call, as `ctx.pty`. Each belongs to one agent: the very object that lives, not its id.
 *
 * A session is there once its set-up is complete. It survives backends and tools that go, ends with its owner or this
 * service, and when its owner's session is confined more narrowly than it is.
 */
export interface PtySessions {
  /** For as long as the caller is there. */
  registerBackend(backend: PtyBackend): Disposer
  /** Types, in code-unit order. */
  listBackends(): readonly string[]
  spawn(owner: Agent, request: PtySpawn, signal?: AbortSignal): Promise<PtySession>
  /** One at a time in each session. */
  startSend(owner: Agent, id: PtySessionId, send: PtySend): PtySendOperation
  read(owner: Agent, id: PtySessionId, range: { readonly offset?: number; readonly count?: number }): PtyPage
  signal(owner: Agent, id: PtySessionId, signal: TerminalSignal): boolean
  resize(owner: Agent, id: PtySessionId, size: TerminalSize): void
  get(owner: Agent, id: PtySessionId): PtySession
  /** Ends it and forgets it; false where it had ended. `reason` is told to whoever asks for it later. */
  kill(owner: Agent, id: PtySessionId, reason?: string): Promise<boolean>
  list(owner: Agent): readonly PtySession[]
  /** Whether the agent has sessions, or is about to. */
  hasOwnerActivity(owner: Agent): boolean
}

declare module '../../kernel/index.ts' {
  interface Services {
    pty: PtySessions
  }
}
