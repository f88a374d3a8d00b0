import type { ToolSchema } from '@dsh/protocol'
import type { Veto, Waterfall } from '../../kernel/index.ts'

/** What one assembly is for. Higher layers merge in the agent. */
export interface AssembleContext {
  /** The scope whose layers count; absent = the global ones alone. */
  readonly scope?: object
  readonly signal?: AbortSignal
  /** Names of the last request's tools: those still there keep their order, what joined comes behind them. */
  readonly previousTools?: readonly string[]
  /** Names of deferred tools that are offered nevertheless. */
  readonly offeredTools?: ReadonlySet<string>
}

export type PromptText = string | ((context: AssembleContext) => string | Promise<string>)

export interface PromptSection {
  readonly name: string
  /** Lower comes first; equal orders keep the order of registration. */
  readonly order: number
  readonly text: PromptText
  /** Stands alone: no other section is sent beside it. */
  readonly complete?: boolean
  /** The text is sent as it is. For text of others, in which `{{` means nothing. */
  readonly verbatim?: boolean
}

/** A changing fact that reaches the model as a logged message, so the request's beginning stays the same. */
export interface PromptContext {
  readonly name: string
  readonly order: number
  readonly text: PromptText
  /** The text is sent as it is. For text of others, in which `{{` means nothing. */
  readonly verbatim?: boolean
}

export interface PromptPart {
  name: string
  text: string
  verbatim?: true
}

/** Gives the value of a variable, or undefined where it has none now; using it then is an error. */
export type PromptVariable = (context: AssembleContext) => string | undefined | Promise<string | undefined>

export interface PromptTools {
  readonly schemas: readonly ToolSchema[]
  /** All names that exist, also where they are hidden now; default: those of `schemas`. */
  readonly knownNames?: Iterable<string>
}

/** Schemas that were adopted once stay the same objects, which makes them cheap to compare. */
export type PromptToolProvider = (context: AssembleContext) => PromptTools | Promise<PromptTools>

/** Everything a request says besides the messages, before `{{variables}}` are filled in. */
export interface PromptAssembly {
  readonly sections: PromptPart[]
  readonly contexts: PromptPart[]
  readonly tools: ToolSchema[]
  readonly variables: Record<string, string | undefined>
}

declare module '../../kernel/index.ts' {
  interface Events {
    'system-prompt/change': Veto<[]>
    'system-prompt/assemble': Waterfall<
      [assembly: PromptAssembly, context: AssembleContext],
      Promise<PromptAssembly>
    >
  }
}
