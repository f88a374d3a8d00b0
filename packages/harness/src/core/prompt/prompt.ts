import type { ToolSchema } from '@dsh/protocol'
import type { Veto, Waterfall } from '../../kernel/index.ts'

/** What one assembly is for. Higher layers merge in the agent. */
export interface AssembleContext {
  /** The scope whose layers count; absent = the global ones alone. */
  readonly scope?: object
  readonly signal?: AbortSignal
}

type Text = string | ((context: AssembleContext) => string | Promise<string>)

export interface PromptSection {
  readonly name: string
  /** Lower comes first; equal orders keep the order of registration. */
  readonly order: number
  readonly text: Text
  /** Stands alone: no other section is sent beside it. */
  readonly complete?: boolean
}

/** A changing fact that reaches the model as a logged message, so the request's beginning stays the same. */
export interface PromptContext {
  readonly name: string
  readonly order: number
  readonly text: Text
}

/** Everything a request says besides the messages, before `{{variables}}` are filled in. */
export interface PromptAssembly {
  readonly sections: { name: string; text: string }[]
  readonly contexts: { name: string; text: string }[]
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
