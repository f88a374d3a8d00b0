import type { EventEmitter } from 'node:events'
import type { Readable, Writable } from 'node:stream'

/** Keeps the two ends of what a process prints; what is between them is counted and gone. */
export interface CaptureSpec {
  readonly headBytes: number
  readonly tailBytes: number
  /** Sees each piece when it comes; the bytes are not its own to keep. */
  readonly onData?: (bytes: Uint8Array) => void
}

export interface SpawnSpec {
  /** The program and its arguments; no shell reads them. */
  readonly argv: readonly [program: string, ...args: string[]]
  readonly cwd: string
  readonly stdin: 'ignore' | 'pipe' | { readonly data: string | Uint8Array }
  readonly stdout: 'pipe' | 'inherit' | CaptureSpec
  readonly stderr: 'pipe' | 'inherit' | CaptureSpec
  /** Milliseconds between asking a tree of processes to end and ending it. */
  readonly graceMs: number
  /** Milliseconds that pipes may stay open after the program ended, held by what it left behind. */
  readonly drainMs: number
  /** The program takes along in an instant what it runs: that is asked to end in its place, and it ends with it. */
  readonly wraps?: boolean
  /** On top of the environment all processes get; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Terminates the process and everything it started. */
  readonly signal?: AbortSignal | undefined
}

export interface ProcessExit {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** Something that lives on holds an output pipe; what it prints from here on is not kept. */
  readonly pipesHeld: boolean
}

/** One process, told apart from a later one of the same number by when it started. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since the system started. */
  readonly startTime: string
}

export interface LiveProcess extends ProcessIdentity {
  /** Its name, at most 15 bytes. */
  readonly command: string
}

export interface CapturedText {
  readonly text: string
  readonly nextOffset: number
  /** Bytes between the offset asked for and the text are gone. */
  readonly lossy: boolean
}

export interface CapturedOutput {
  /** Everything that came, kept or not. */
  readonly totalBytes: number
  /** Reading takes nothing away. Text never ends inside a character while more may come. */
  readFrom(byteOffset: number): CapturedText
  /** The kept bytes; where nothing is missing, `tail` goes on right behind `head`. */
  ends(): { readonly head: Uint8Array; readonly tail: Uint8Array; readonly omittedBytes: number }
}

export interface SubprocessHandle {
  /** -1 where it could not be started. */
  readonly pid: number
  readonly stdin: Writable | undefined
  readonly stdout: Readable | undefined
  readonly stderr: Readable | undefined
  readonly collected: {
    readonly stdout: CapturedOutput | undefined
    readonly stderr: CapturedOutput | undefined
  }
  /** The program itself has ended, whatever still holds its pipes. */
  readonly hasExited: boolean
  /** Settles when the program ended and its captured pipes are read out or given up. Rejects where it never started. */
  readonly done: Promise<ProcessExit>
  /** Asks the whole tree to end, then ends it. Never signals a process that is not of the tree. */
  terminate(): void
  /** True when nothing of the tree lives any more, false when `signal` aborts before. */
  waitForExit(signal?: AbortSignal): Promise<boolean>
  /** What of the tree lives now, the program itself included. Looks at every process of the system. */
  survivors(): readonly LiveProcess[]
  /** Whether the process group is still there. Costs one system call; what left the group does not count. */
  hasGroup(): boolean
}

/**
 * A process that one of this service's has started, in the manner of a child process of this program: it tells of `exit`
 * with its code and signal, and of `close` when nobody writes to its outputs any more.
 */
export interface ForeignProcess extends EventEmitter {
  /** Of the leader of its group and session; undefined while that is not known. */
  readonly pid: number | undefined
  readonly stdin: null
  readonly stdout: Readable
  readonly stderr: Readable
}

export interface AdoptSpec extends Pick<SpawnSpec, 'graceMs' | 'drainMs'> {
  readonly stdout: CaptureSpec
  readonly stderr: CaptureSpec
  /** The value by which its environment names its tree: that of the process that started it, and more. */
  readonly marker: string
}

export interface TerminalSize {
  readonly rows: number
  readonly columns: number
}

export type TerminalSignal = 'SIGINT' | 'SIGTERM' | 'SIGKILL' | 'SIGTSTP' | 'SIGHUP'

export interface TerminalSpec
  extends TerminalSize, Pick<SpawnSpec, 'argv' | 'cwd' | 'env' | 'graceMs' | 'wraps' | 'signal'> {}

/** The group of processes that has a terminal now. */
export interface Foreground {
  readonly processGroupId: number
  /** Of the group's leader, its arguments ended by NUL each. */
  readonly commandLine: string
  /** That one of them waits for input: the same text for as long as it is the same wait. Absent also where nobody can tell. */
  readonly inputWait?: string
}

export interface TerminalHandle extends Pick<
  SubprocessHandle,
  'pid' | 'hasExited' | 'done' | 'terminate' | 'waitForExit' | 'survivors'
> {
  /** What it prints, with all that a terminal obeys; who does not read holds the program up. */
  readonly output: Readable
  /** Why it has pipes and no terminal, for people, and what mends it. */
  readonly notice: string | undefined
  /** As if typed; what the terminal does not take yet is typed later. */
  write(text: string): void
  resize(size: TerminalSize): void
  /** May cost a look at every process of the system. Undefined where the system does not tell. */
  inspectForeground(): Foreground | undefined
  /** To the group that has the terminal, which is given, and forgets what was not taken of what was typed; undefined where there is nobody any more. */
  signalForeground(signal: TerminalSignal): number | undefined
}

/** The processes of the execution world. Knows no defaults: whoever spawns states everything. */
export interface Subprocess {
  /** The absolute path of a program: given absolute, or as a bare name on the PATH. */
  resolveExecutable(
    command: string,
    options?: { readonly env?: SpawnSpec['env']; readonly signal?: AbortSignal },
  ): Promise<string>
  /** Throws the reason of a signal that has aborted already; what else goes wrong rejects `done`. */
  spawn(spec: SpawnSpec): SubprocessHandle
  /**
   * A program on a terminal of its own, as whose leader it ends like every other; on pipes, with a notice, where no
   * terminal can be made. Rejects where the program or the folder is missing.
   */
  spawnTerminal(spec: TerminalSpec): Promise<TerminalHandle>
  /** Takes a process for one of its own: what it prints is captured, and its tree is ended with the others. */
  adopt(process: ForeignProcess, spec: AdoptSpec): SubprocessHandle
  /** What every process gets. */
  readonly env: Readonly<Record<string, string>>
  /** Names of variables that processes do not get, in code-unit order. */
  readonly withheldNames: readonly string[]
}

declare module '../../kernel/index.ts' {
  interface Services {
    subprocess: Subprocess
  }
}
