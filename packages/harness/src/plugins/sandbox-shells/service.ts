import type { ConfinedArgv, SandboxExecutionPolicy } from '../sandbox/index.ts'
import type { CaptureSpec, SubprocessHandle } from '../subprocess/index.ts'

export interface ShellCommand {
  /** The absolute path of bash. */
  readonly shell: string
  readonly command: string
  readonly cwd: string
  readonly policy: SandboxExecutionPolicy
  /** On top of the environment all processes get. */
  readonly env: Readonly<Record<string, string>>
  readonly stdout: CaptureSpec
  readonly stderr: CaptureSpec
  /** As of a process that is spawned. */
  readonly graceMs: number
  readonly drainMs: number
}

export interface RunningShell {
  readonly handle: SubprocessHandle
  /** By which what came of it is judged; its argv is that of the sandbox. */
  readonly confined: ConfinedArgv
}

/**
 * Sandboxes that stand by and serve the commands of one session, as `ctx.sandboxShells`: the same confinement for less
 * than a sandbox of its own costs.
 */
export interface SandboxShells {
  /**
   * Runs `command` in the sandbox of its session. Undefined where none stands by for it or the command does not fit;
   * then nothing of it has run or will, and it is run in a sandbox of its own.
   */
  run(command: ShellCommand): Promise<RunningShell | undefined>
}

declare module '../../kernel/index.ts' {
  interface Services {
    sandboxShells: SandboxShells
  }
}
