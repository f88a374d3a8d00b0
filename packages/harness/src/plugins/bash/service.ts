import type { CallId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import type { Emit } from '../../kernel/index.ts'
import type { DeniedAccess, SandboxExecutionPolicy, SandboxMode } from '../sandbox/index.ts'
import type { CapturedOutput, LiveProcess } from '../subprocess/index.ts'

export type BashStream = 'stdout' | 'stderr'

export interface BashRequest {
  readonly command: string
  /** Absolute. Default: the configured folder. */
  readonly workdir?: string
  /** Milliseconds; more than the configured maximum is the maximum. Throws a RangeError unless positive. */
  readonly timeoutMs?: number
}

export interface BashSpec extends Required<BashRequest> {
  readonly signal?: AbortSignal | undefined
  /** What the command may do; without one, or with full access, it is not confined. */
  readonly policy?: SandboxExecutionPolicy | undefined
  /** On top of what every command gets. */
  readonly env?: Readonly<Record<string, string>>
  /** Sees the output when it comes, in whole characters and without terminal sequences. */
  readonly onOutput?: (stream: BashStream, text: string) => void
}

/** How a command was confined, and whether it looks as if that had stopped it: a hint, no more. */
export interface BashSandboxFacts {
  readonly mode: SandboxMode
  readonly network: boolean
  readonly enforcement: 'full' | 'partial'
  readonly denied: boolean
  /** What it wanted, as far as that can be told. */
  readonly access?: DeniedAccess
  /** Why the workspace is not written, where that is the person's to change. */
  readonly reason?: string
}

export interface BashResult {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** Whether it was ended for the time it took, or because it was cancelled: whichever came first. */
  readonly timedOut: boolean
  readonly aborted: boolean
  readonly timeoutMs: number
  readonly durationMs: number
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
  /** What the command started and left running. */
  readonly survivors: readonly LiveProcess[]
  /** `sh` where there is no bash. */
  readonly shell: 'bash' | 'sh'
  /** Only of a command that was confined. */
  readonly sandbox?: BashSandboxFacts
}

/** A command that runs. */
export interface BashProcess {
  readonly pid: number
  /** Goes on while it runs, and stays. */
  readonly output: { readonly stdout: CapturedOutput; readonly stderr: CapturedOutput }
  /** Rejects with SANDBOX_UNAVAILABLE where what should have confined it failed instead. */
  readonly result: Promise<BashResult>
  /** From here on neither its time-out nor its signal ends it, and `onOutput` hears no more. */
  detach(): void
  /** Whether it runs, or something that it left. Looks at every process of the system. */
  isRunning(): boolean
  /** Ends it and all that it left running; resolves when nothing of it runs, or it is given up. */
  kill(): Promise<void>
}

/** Runs commands in a shell, each in a fresh one. */
export interface Bash {
  /** Fills in what is missing. */
  resolve(request: BashRequest): BashSpec
  /** Rejects where no shell could be started, or not confined as it must be; whatever the command does is a result. */
  run(spec: BashSpec): Promise<BashResult>
  /** The same for who does not wait for the end. */
  start(spec: BashSpec): Promise<BashProcess>
}

declare module '../../kernel/index.ts' {
  interface Services {
    bash: Bash
  }

  interface Events {
    /**
     * A command of a tool call printed something; lives on no log. `text` holds no terminal sequences, but carriage
     * returns where a line is drawn anew. Of a flood only a part is told, and that says so.
     */
    'bash/output': Emit<
      [
        {
          readonly agent: Agent | undefined
          readonly callId: CallId
          readonly stream: BashStream
          readonly text: string
        },
      ]
    >
  }
}
