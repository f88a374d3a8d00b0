import type { CommandId, ImageBlock } from '@dsh/protocol'
import type { Emit } from '../../kernel/index.ts'
import type { Agent } from '../agent/index.ts'

/** What a person may write behind a command's name. */
export interface CommandInput {
  /** Shown where the input goes, such as `<path>`. */
  readonly hint: string
  /** Whether pictures may come along. */
  readonly images?: boolean
}

/** What surfaces show of a command. */
export interface CommandDescriptor {
  /** Lower case, as in `/compact`. */
  readonly name: string
  readonly description: string
  readonly input?: CommandInput
}

export interface CommandDefinition extends CommandDescriptor {
  /** Whether the log keeps what was written behind the name. Default true. */
  readonly recordInput?: boolean
  /** Gives the result, or throws. Work that goes on after `signal` aborted is no longer waited for. */
  handler(invocation: CommandInvocation): CommandResult | void | Promise<CommandResult | void>
}

export interface CommandInvocation {
  readonly commandId: CommandId
  readonly agent: Agent
  /** All that follows the name, the space before it too. */
  readonly rawInput: string
  /** Pictures that came along, already stored. */
  readonly attachments: readonly ImageBlock[]
  readonly signal: AbortSignal
}

/** `sourceEventSeq` names the event that holds what the command did; it stands before the end of the command. */
export type CommandResult =
  | { readonly kind: 'success'; readonly text?: string; readonly sourceEventSeq?: number }
  | { readonly kind: 'error'; readonly text: string }

export interface CommandExecution {
  readonly commandId: CommandId
  readonly result: CommandResult
}

export interface ParsedCommand {
  readonly name: string
  readonly rawInput: string
}

declare module '../../kernel/index.ts' {
  interface Events {
    'commands/change': Emit<[]>
  }
}

const commandLine = /^\/([a-z][a-z0-9_-]*)(?=[ \t\n\v\f\r]|$)/

/** `/name` at the very start, up to the end or white space; everything else is no command. */
export function parseCommand(line: string): ParsedCommand | undefined {
  const match = commandLine.exec(line)
  const name = match?.[1]
  return name === undefined ? undefined : { name, rawInput: line.slice(name.length + 1) }
}
