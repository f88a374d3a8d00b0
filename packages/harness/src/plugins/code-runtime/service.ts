import type { ContentBlock, JsonValue } from '@dsh/protocol'
import type { ToolExecution } from '../../core/tools/index.ts'
import type { Waterfall } from '../../kernel/index.ts'
import type { SandboxExecutionPolicy } from '../sandbox/index.ts'

/** One global object of a program: its functions are answered by the host. */
export interface CodeNamespace {
  readonly global: string
  /** Own enumerable functions, whatever they are called. Without arguments they get `{}`. */
  readonly functions: Readonly<Record<string, (args: JsonValue) => Promise<JsonValue>>>
  /** The error a rejected call throws inside the program; `memberNameProperty` of it names the function. */
  readonly errorClass?: { readonly name: string; readonly memberNameProperty: string }
}

export interface CodeRun {
  /** The body of an async function: it may await and return. */
  readonly program: string
  readonly bindings: readonly CodeNamespace[]
  readonly signal?: AbortSignal
  /** Whatever it allows, a program reads at most; it decides alone whether one may run where nothing confines it. */
  readonly policy?: SandboxExecutionPolicy
}

export type CodeFailureKind =
  /** The program threw, or is no program. */
  | 'exception'
  | 'timeout'
  | 'abort'
  /** The process ended, or could not be started, before the program did. */
  | 'worker-exit'
  /** The program returned what JSON does not keep. */
  | 'invalid-output'
  | 'output-limit'

export interface CodeResult {
  /** Absent where the program returned nothing or failed. */
  readonly value?: JsonValue
  /** What it printed, in order. */
  readonly logs: readonly string[]
  readonly error?: { readonly kind: CodeFailureKind; readonly message: string }
  /** Calls that were answered and whose answer the program never looked at: their numbers, the first call being 1. */
  readonly unread?: readonly number[]
}

export type CodeLanguage = 'typescript' | 'python'

/** Runs programs of models apart from everything else, as `ctx.codeRuntime`. */
export interface CodeRuntime {
  readonly language: CodeLanguage
  /** Each run is a process of its own. */
  readonly isolation: 'process'
  /** Rejects only for bindings that cannot be, and after disposal; whatever a program does is a result. */
  run(run: CodeRun): Promise<CodeResult>
}

declare module '../../kernel/index.ts' {
  interface Services {
    codeRuntime: CodeRuntime
  }

  interface Events {
    /** What the log keeps of the result of a program's call; the program gets it as it is. */
    'tools/code-dispatch-log': Waterfall<
      [execution: ToolExecution, content: readonly ContentBlock[]],
      Promise<readonly ContentBlock[]>
    >
  }
}
